"""Style sheets and scripts of the page: what the browser does, without asking Python."""

PAGE = """
<style>
  html, body { background: #ffffff; color: #1c2127; margin: 0; }
  body { padding: .6rem; font-family: system-ui, sans-serif; }
  @media (prefers-color-scheme: dark) { html, body { background: #15191e; color: #e6e9ec; } }
</style>
"""

WIDGETS = """
:host { font-size: 14px; }
.slick-header-columns, .slick-header-column { background: #eef1f4 !important; color: #1c2127; }
.slick-cell { background: #ffffff; color: #1c2127; }
.slick-row.odd .slick-cell { background: #f6f8fa; }
.slick-cell.selected { background: #cfe3f5 !important; }
label, .bk-slider-title, .bk-input-group { color: #1c2127; }
@media (prefers-color-scheme: dark) {
  .slick-header-columns, .slick-header-column { background: #2a3138 !important; color: #e6e9ec; }
  .slick-cell { background: #15191e; color: #e6e9ec; border-color: #2a3138; }
  .slick-row.odd .slick-cell { background: #1b2027; }
  .slick-cell.selected { background: #274b6b !important; }
  label, .bk-slider-title, .bk-input-group { color: #e6e9ec; }
  .bk-input, .choices__inner, .choices__list--dropdown { background: #1b2027 !important;
    color: #e6e9ec !important; border-color: #4a5560 !important; }
  .choices__item { color: #e6e9ec; }
  .bk-btn { background: #2a3138 !important; color: #e6e9ec !important; }
}
"""

THEME = """
const dark = window.matchMedia("(prefers-color-scheme: dark)");
function paint() {
  const ink = dark.matches ? "#e6e9ec" : "#1c2127";
  const lines = dark.matches ? "#39424c" : "#d9dee3";
  const ground = dark.matches ? "#15191e" : "#ffffff";
  for (const plot of plots) {
    plot.background_fill_color = ground; plot.border_fill_color = ground;
    plot.outline_line_color = lines;
    if (plot.title) plot.title.text_color = ink;
    for (const side of [plot.below, plot.left]) for (const axis of side) {
      axis.axis_line_color = lines; axis.major_tick_line_color = lines;
      axis.minor_tick_line_color = null;
      axis.major_label_text_color = ink; axis.axis_label_text_color = ink;
    }
    for (const grid of plot.center) {
      if ("grid_line_color" in grid) grid.grid_line_color = lines;
      if ("label_text_color" in grid) {
        grid.label_text_color = ink; grid.background_fill_color = ground;
        grid.border_line_color = lines;
      }
    }
  }
}
paint();
dark.addEventListener("change", paint);
"""

SHOW_FRAME = """
const at = frame.value, all = frames.data, names = Object.keys(all), shown = {};
for (const name of names) shown[name] = [];
for (let i = 0; i < all.frame.length; i++)
  if (all.frame[i] === at) for (const name of names) shown[name].push(all[name][i]);
now.data = shown;
frame.title = shown.batch.length ? "Clusters at batch " + shown.batch[0] : "Clusters";
"""

ZOOM = """
const chosen = events.selected.indices.map(i => events.data.batch[i]);
if (chosen.length) {
  const low = Math.min(...chosen), high = Math.max(...chosen);
  const room = Math.max(10, high - low);
  time.start = low - room; time.end = high + room;
} else { time.start = time.reset_start; time.end = time.reset_end; }
"""

# What is marked as seen is a matter of one open page: another reader has not seen it, and another
# run may be written to the same file.
SEE = """
const newest = events.data.batch.reduce((one, other) => Math.max(one, other), -1);
seen.tags = seen.active ? [newest] : [];
seen.label = seen.active ? `Seen up to batch ${newest}: show all` : "Mark all as seen";
events.change.emit();
"""

IS_SHOWN = """
const chosen = kinds.value, last = seen.active ? seen.tags[0] : -1, found = [];
for (let i = 0; i < source.get_length(); i++)
  if ((!chosen.length || chosen.includes(source.data.kind[i])) && source.data.batch[i] > last)
    found.push(i);
return found;
"""
