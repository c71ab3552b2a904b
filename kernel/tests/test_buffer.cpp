// The uninitialised array: what was written stays when it grows.
#include <gtest/gtest.h>

#include <cstdint>

#include "kmeans/buffer.hpp"

namespace kmeander {
namespace {

TEST(Buffer, IsEmptyAtFirst) {
    const Buffer<double> buffer;
    EXPECT_EQ(buffer.size(), 0U);
    EXPECT_EQ(buffer.data(), nullptr);
}

TEST(Buffer, KeepsItsValuesWhenItGrows) {
    Buffer<std::uint32_t> buffer;
    for (std::uint32_t size = 1; size < 300; ++size) {
        buffer.resize(size);
        buffer[size - 1] = 7 * size;
    }
    EXPECT_EQ(buffer.size(), 299U);
    for (std::uint32_t size = 1; size < 300; ++size) EXPECT_EQ(buffer[size - 1], 7 * size);
}

TEST(Buffer, LeavesTheOldRoomWhereItIsWhileItFits) {
    Buffer<double> buffer(100);
    const double *before = buffer.data();
    buffer.resize(50);
    buffer.resize(100);
    EXPECT_EQ(buffer.data(), before);
}

}  // namespace
}  // namespace kmeander
