// Bindings of the classes that Python holds: batches, windows and partitions.
#include <algorithm>
#include <memory>
#include <new>

#include "bindings/handles.hpp"
#include "kmeans/partition.hpp"

namespace bindings {
namespace {

using kmeander::Bounds;
using kmeander::ClusterSums;
using kmeander::Partition;

void make_bounds(Bounds *place, const In1<float> &upper, const In1<float> &lower,
                 const Centroids &snapshot, const std::optional<Float64Rows> &axes) {
    std::shared_ptr<const kmeander::Axes> along;
    if (axes) along = std::make_shared<const kmeander::Axes>(span_of(*axes), axes->shape(1));
    new (place) Bounds(span_of(upper), span_of(lower), span_of(snapshot), snapshot.shape(0),
                       snapshot.shape(1), std::move(along));
}

void make_sums(ClusterSums *place, const Float64Rows &masses, const In3 &sums,
               const Float64Rows &scatter) {
    const std::size_t n_batches = sums.shape(0), k = sums.shape(1), d = sums.shape(2);
    for (const Float64Rows *table : {&masses, &scatter})
        need(table->shape(0) == n_batches && table->shape(1) == k,
             "masses, sums and scatter do not fit each other");
    const auto arrays = std::make_shared<kmeander::SumArrays>(n_batches, k, d);
    std::copy_n(aligned(masses.data()), masses.size(), arrays->masses.data());
    std::copy_n(aligned(sums.data()), sums.size(), arrays->sums.data());
    std::copy_n(aligned(scatter.data()), scatter.size(), arrays->scatter.data());
    new (place) ClusterSums(arrays);
}

void make_partition(Partition *place, const In1<std::int32_t> &labels, const Bounds *bounds,
                    const ClusterSums *sums) {
    new (place) Partition(span_of(labels), bounds, sums);
}

// Arrays that Python reads keep the object alive that it has them from.
template <class Class, class Show>
auto shower(const Show &show) {
    return [show](nb::handle_t<Class> self) { return show(*nb::inst_ptr<Class>(self), self); };
}

// For pickle and copy: the class and the properties that it is made of.
template <class Class, class... Names>
auto reducer(Names... names) {
    return [names...](nb::handle_t<Class> self) {
        return nb::make_tuple(self.type(), nb::make_tuple(nb::object(self.attr(names))...));
    };
}

void define_partition(nb::module_ &module) {
    using namespace nb::literals;
    nb::class_<Bounds>(module, "Bounds", nb::is_final())
        .def("__init__", &make_bounds, "upper"_a.noconvert(), "lower"_a.noconvert(),
             "snapshot"_a.noconvert(), "axes"_a.noconvert().none() = nb::none())
        .def_prop_ro("upper", shower<Bounds>([](const Bounds &bounds, nb::handle self) {
                         return shown(bounds.upper().data(), {bounds.upper().size()}, self);
                     }))
        .def_prop_ro("lower", shower<Bounds>([](const Bounds &bounds, nb::handle self) {
                         return shown(bounds.lower().data(), {bounds.lower().size()}, self);
                     }))
        .def_prop_ro("snapshot", shower<Bounds>([](const Bounds &bounds, nb::handle self) {
                         return shown(bounds.snapshot().data(), {bounds.k(), bounds.d()}, self);
                     }))
        .def_prop_ro("axes",
                     [](nb::handle_t<Bounds> self) -> std::optional<Shown<double>> {
                         const auto &axes = nb::cast<const Bounds &>(self).axes();
                         if (axes == nullptr) return std::nullopt;
                         return shown(axes->values().data(), {axes->count() + 1, axes->d()}, self);
                     })
        .def("__reduce__", reducer<Bounds>("upper", "lower", "snapshot", "axes"));
    nb::class_<ClusterSums>(module, "ClusterSums", nb::is_final())
        .def("__init__", &make_sums, "masses"_a.noconvert(), "sums"_a.noconvert(),
             "scatter"_a.noconvert())
        .def_prop_ro("masses", shower<ClusterSums>([](const ClusterSums &sums, nb::handle self) {
                         return shown(sums.masses(), {sums.n_batches(), sums.k()}, self);
                     }))
        .def_prop_ro("sums", shower<ClusterSums>([](const ClusterSums &sums, nb::handle self) {
                         return shown(sums.sums(), {sums.n_batches(), sums.k(), sums.d()}, self);
                     }))
        .def_prop_ro("scatter", shower<ClusterSums>([](const ClusterSums &sums, nb::handle self) {
                         return shown(sums.scatter(), {sums.n_batches(), sums.k()}, self);
                     }))
        .def("__reduce__", reducer<ClusterSums>("masses", "sums", "scatter"));
    nb::class_<Partition>(module, "Partition", nb::is_final())
        .def("__init__", &make_partition, "labels"_a.noconvert(), "bounds"_a.none() = nb::none(),
             "sums"_a.none() = nb::none())
        .def_prop_ro("n_points", &Partition::n_points)
        .def_prop_ro("labels", shower<Partition>([](const Partition &found, nb::handle self) {
                         return shown(found.labels().data(), {found.n_points()}, self);
                     }))
        .def_prop_ro("bounds",
                     [](const Partition &found) -> std::optional<Bounds> {
                         if (!found.has_bounds()) return std::nullopt;
                         return found.bounds();
                     })
        .def_prop_ro("sums", [](const Partition &found) { return found.sums(); })
        .def("without", &Partition::without, "n_batches"_a, "n_points"_a)
        .def("of_first_batch", &Partition::of_first_batch, "n_points"_a)
        .def("without_sums", &Partition::without_sums)
        .def(
            "renumbered",
            [](const Partition &found, const In1<std::int64_t> &order) {
                return found.renumbered(span_of(order));
            },
            "order"_a.noconvert())
        .def("__reduce__", reducer<Partition>("labels", "bounds", "sums"));
}

}  // namespace

void define_classes(nb::module_ &module) {
    using namespace nb::literals;
    define_partition(module);
    nb::class_<BatchHandle>(module, "BatchHandle", nb::is_final())
        .def(nb::init<Points, std::optional<Weights>, double>(), "points"_a.noconvert(),
             "weights"_a.noconvert().none(), "mass"_a);
    nb::class_<WindowHandle>(module, "WindowHandle", nb::is_final())
        .def(nb::init<nb::tuple, std::vector<double>>(), "batches"_a, "decay"_a)
        .def_prop_ro("decay", shower<WindowHandle>([](const WindowHandle &self, nb::handle owner) {
                         const std::span<const double> decay = self.window().decay();
                         return shown(decay.data(), {decay.size()}, owner);
                     }))
        .def_prop_ro("n_points", [](const WindowHandle &self) { return self.window().n_points(); })
        .def_prop_ro("mass", [](const WindowHandle &self) { return self.window().mass(); })
        .def_prop_ro("n_effective",
                     [](const WindowHandle &self) { return self.window().n_effective(); })
        .def_prop_ro("has_weights",
                     [](const WindowHandle &self) { return self.window().has_weights(); });
}

}  // namespace bindings
