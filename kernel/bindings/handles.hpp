// Batches and windows as Python holds them: views for the kernel that keep the arrays alive.
//
// Both are made once and used by every step that the batch is remembered: Python hands over
// objects, not arrays, which would each have to be asked what they are.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "kmeans/window.hpp"

namespace bindings {

class BatchHandle {
public:
    BatchHandle(Points points, std::optional<Weights> weights, double mass)
        : points_(std::move(points)), weights_(std::move(weights)) {
        const kmeander::PointsView rows = view_of(points_);
        need_rows(rows, rows.columns);
        view_ = {rows, data_or_null(weights_, rows.count), mass, leading_.get()};
    }

    const kmeander::BatchView &view() const { return view_; }

private:
    Points points_;
    std::optional<Weights> weights_;
    std::unique_ptr<kmeander::LeadingCache> leading_ = std::make_unique<kmeander::LeadingCache>();
    kmeander::BatchView view_;
};

class WindowHandle {
public:
    WindowHandle(nb::tuple batches, std::vector<double> decay)
        : batches_(std::move(batches)), window_(views_of(batches_), std::move(decay)) {}

    const kmeander::DecayedWindow &window() const { return window_; }

private:
    static std::vector<kmeander::BatchView> views_of(const nb::tuple &batches) {
        std::vector<kmeander::BatchView> views;
        views.reserve(batches.size());
        for (const nb::handle batch : batches) {
            need(nb::isinstance<BatchHandle>(batch), "no batches");
            views.push_back(nb::cast<const BatchHandle &>(batch).view());
        }
        return views;
    }

    nb::tuple batches_;  // keeps them alive
    kmeander::DecayedWindow window_;
};

// Partitions, batches and windows.
void define_classes(nb::module_ &module);
// Functions on them: Lloyd, local search, seeding.
void define_kmeans(nb::module_ &module);
// What a batch did to the clusters.
void define_tracking(nb::module_ &module);
// Whether a batch differs from those before by more than is usual.
void define_change_test(nb::module_ &module);

}  // namespace bindings
