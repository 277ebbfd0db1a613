// A vector of plain values that grows in place where the kernel can move pages (realloc of a large block is
// an mremap): std::vector would hold the old and the new block at once, doubling the peak memory of a trace.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include "base/result.h"

namespace fullbore::timeline {

template <typename T>
class PodVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  PodVector() = default;
  PodVector(const PodVector&) = delete;
  PodVector& operator=(const PodVector&) = delete;
  PodVector(PodVector&& other) noexcept { *this = std::move(other); }
  PodVector& operator=(PodVector&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~PodVector() { std::free(data_); }

  void push_back(const T& value) {
    if (size_ == capacity_) Reserve(capacity_ == 0 ? 1024 : capacity_ * 2);
    data_[size_++] = value;
  }
  void resize_down(size_t size) { size_ = size; }
  void clear() {
    std::free(data_);
    data_ = nullptr;
    size_ = capacity_ = 0;
  }

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

 private:
  void Reserve(size_t capacity) {
    void* grown = std::realloc(static_cast<void*>(data_), capacity * sizeof(T));
    FB_CHECK(grown != nullptr);
    data_ = static_cast<T*>(grown);
    capacity_ = capacity;
  }

  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace fullbore::timeline
