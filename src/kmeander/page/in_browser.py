"""Style sheets and scripts of the page: what the browser does, without asking Python."""

from importlib.resources import files

PAGE = """
<style>
  html, body { background: #ffffff; color: #1c2127; margin: 0; }
  body { padding: .6rem; font-family: system-ui, sans-serif; }
  @media (prefers-color-scheme: dark) { html, body { background: #15191e; color: #e6e9ec; } }
</style>
"""

WIDGETS = """
:host { font-size: 15px; }
label, .bk-slider-title, .bk-input-group { color: #1c2127; }
.bk-input { min-height: 2.4em; color: #1c2127; background: #ffffff; border-color: #76808a; }
.bk-btn { min-height: 2.4em; color: #1c2127; background: #f2f4f6; border-color: #76808a; }
:focus-visible { outline: 3px solid #0072b2 !important; outline-offset: 1px; }
@media (prefers-color-scheme: dark) {
  label, .bk-slider-title, .bk-input-group { color: #e6e9ec; }
  .bk-input { background: #1b2027 !important; color: #e6e9ec !important; border-color: #8b96a1; }
  .bk-btn { background: #2a3138 !important; color: #e6e9ec !important; border-color: #8b96a1; }
  .bk-btn.bk-active { background: #274b6b !important; }
  :focus-visible { outline-color: #6cb8ee !important; }
}
"""

TEXT = files("kmeander.page").joinpath("text.css").read_text("utf-8")

THEME = """
const dark = window.matchMedia("(prefers-color-scheme: dark)");
function paint() {
  const ink = dark.matches ? "#e6e9ec" : "#1c2127";
  const lines = dark.matches ? "#39424c" : "#d9dee3";
  const ground = dark.matches ? "#15191e" : "#ffffff";
  for (const plot of plots) {
    plot.background_fill_color = ground; plot.border_fill_color = ground;
    plot.outline_line_color = null;
    if (plot.title) plot.title.text_color = ink;
    for (const side of [plot.below, plot.left]) for (const axis of side) {
      axis.axis_line_color = lines; axis.major_tick_line_color = lines;
      axis.minor_tick_line_color = null;
      axis.major_label_text_color = ink; axis.axis_label_text_color = ink;
    }
    for (const grid of plot.center) {
      if ("grid_line_color" in grid) grid.grid_line_color = lines;
      if ("text_color" in grid) grid.text_color = ink;
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

# The column that is drawn over time; what is drawn of it is there already, or comes from Python.
SHOW_COLUMN = """
const place = column.options.indexOf(column.value);
const name = "y" + Math.max(place, 0);
if (name in courses.data) for (const glyph of glyphs) glyph.ys = {field: name};
axis.axis_label = column.value;
"""

# Of the newest events that are to be shown those that the list has room for, as HTML. Nothing of
# the stream is taken for HTML.
LIST_EVENTS = """
const text = value => String(value).replace(/[&<>"']/g, sign => "&#" + sign.charCodeAt(0) + ";");
const last = seen.active ? seen.tags[0] : -1, all = events.data, found = [];
const kind = kinds.value, cluster = clusters.value;
for (let i = all.batch.length - 1; i >= 0; i--)
  if ((!kind || all.kind[i] === kind) && (!cluster || all.about[i].split(" ").includes(cluster))
      && all.batch[i] > last) found.push(i);
found.sort((one, other) => all.batch[other] - all.batch[one] || one - other);
// On a phone the page scrolls, not a list within it, so there are fewer at first.
const phone = window.matchMedia("(max-width: 640px)").matches;
const room = (phone ? 6 : 40) * (1 + (more.tags[0] ?? 0));
const chosen = new Set(events.selected.indices);
const items = found.slice(0, room).map(i => {
  const when = all.when[i] ? " &middot; " + text(all.when[i]) : "";
  const words = text(all.words[i].slice(0, 1).toUpperCase() + all.words[i].slice(1));
  return `<li class="${chosen.has(i) ? "chosen" : ""}"><button type="button" data-event="${i}" ` +
    `aria-pressed="${chosen.has(i)}">batch ${text(all.batch[i])}${when}</button>` +
    `<span class="kind"><i style="background:${text(all.color[i])}"></i>${text(all.event[i])}` +
    `</span><div class="${all.alpha[i] < 1 ? "faint" : ""}">${words}.</div></li>`;
});
const n = found.length, shown = Math.min(n, room);
const said = !all.batch.length ? "Nothing has happened yet." :
  !n ? "Nothing that is chosen has happened." :
  shown < n ? `The newest ${shown} of ${n.toLocaleString("en")}.` : "";
list.text = `<p class="noise" role="status">${said}</p>` +
  (n ? `<ol class="events" tabindex="0" aria-label="Events, the newest first">${items.join("")}` +
   "</ol>" : "");
more.visible = shown < n;
"""

MORE = "more.tags = [(more.tags[0] ?? 0) + 5]; events.change.emit();"

# Choosing an event looks at its time in all plots; choosing it again goes back.
CHOOSE = """
document.addEventListener("click", clicked => {
  const button = clicked.composedPath().find(one => one.dataset && "event" in one.dataset);
  if (!button) return;
  const place = Number(button.dataset.event);
  const again = events.selected.indices.includes(place);
  for (const one of button.getRootNode().querySelectorAll("[data-event]")) {
    const is = !again && one === button;
    one.setAttribute("aria-pressed", is); one.parentNode.classList.toggle("chosen", is);
  }
  events.selected.indices = again ? [] : [place];
});
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
const kind = kinds.value, cluster = clusters.value, last = seen.active ? seen.tags[0] : -1;
const found = [];
for (let i = 0; i < source.get_length(); i++)
  if ((!kind || source.data.kind[i] === kind) && source.data.batch[i] > last &&
      (!cluster || source.data.about[i].split(" ").includes(cluster))) found.push(i);
return found;
"""
