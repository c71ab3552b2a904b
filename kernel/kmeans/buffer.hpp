// Uninitialised array: for numbers that are written before they are read. To fill it with zeros,
// as a vector is, would for small batches take as long as the work.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>

namespace kmeander {

template <class T>
class Buffer {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    Buffer() = default;
    explicit Buffer(std::size_t size) { resize(size); }

    // What was there stays, what is new has any value.
    void resize(std::size_t size) {
        if (size > room_) {
            const std::size_t room = std::max(size, 2 * room_);
            std::unique_ptr<T[]> larger(new T[room]);
            std::copy_n(data_.get(), size_, larger.get());
            data_ = std::move(larger);
            room_ = room;
        }
        size_ = size;
    }

    std::size_t size() const { return size_; }
    T *data() { return data_.get(); }
    const T *data() const { return data_.get(); }
    T &operator[](std::size_t i) { return data_[i]; }
    const T &operator[](std::size_t i) const { return data_[i]; }

private:
    std::unique_ptr<T[]> data_;
    std::size_t size_ = 0, room_ = 0;
};

}  // namespace kmeander
