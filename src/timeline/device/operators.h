// What framework operators were called with: the tensors and arguments from which the work of their kernels
// follows. Recorded by profilers that were asked for shapes (record_shapes=True).
//
// A training loop calls the same operators with the same shapes again and again: every distinct call is kept
// once, and each of a million calls costs 16 bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "timeline/operator_kinds.h"
#include "timeline/pod_vector.h"

namespace fullbore::timeline {

using NameId = uint32_t;

enum class ElementType : uint8_t {
  kUnknown,
  kFloat64,
  kFloat32,
  kFloat16,
  kBFloat16,
  kFloat8,
  kComplex64,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kBool,
};

ElementType TypeNamed(std::string_view name);  // "c10::BFloat16", "float", "Half", "long int"
std::string_view Name(ElementType type);       // as users write it: "bfloat16", "float32"
int64_t ElementBytes(ElementType type);        // 0 for an unknown type
bool IsFloating(ElementType type);

// One argument. A tensor has dimensions (one without any is as good as a number), a list of tensors their
// sum; what was passed instead of a tensor is in `concrete` where the profiler wrote it down: "[2, 2]",
// "True".
struct OperatorInput {
  ElementType type = ElementType::kUnknown;
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;  // in elements; empty where not recorded
  int64_t list_tensors = 0;
  int64_t list_elements = 0;
  std::string concrete;

  bool tensor() const { return !dims.empty(); }
};

int64_t Elements(const std::vector<int64_t>& dims);  // of a tensor; dimensions were checked when read

struct OperatorShape {
  NameId name = 0;
  OperatorKind kind = OperatorKind::kNone;
  std::vector<OperatorInput> inputs;
};

struct OperatorCall {
  static constexpr uint32_t kMaxNs = ~0U;  // 4.3 s; longer calls are cut there

  int64_t begin_ns = 0;
  uint32_t duration_ns = 0;
  uint16_t shape = 0;   // into OperatorLog::shapes
  uint16_t thread = 0;  // into DeviceTrace::threads

  int64_t end_ns() const { return begin_ns + duration_ns; }
};

// The calls of one rank. Bounded, whatever a trace holds: beyond the limits a shape is unknown (number 0),
// and the calls with it are counted instead of kept.
class OperatorLog {
 public:
  static constexpr size_t kMaxShapes = 1 << 14;
  static constexpr size_t kMaxNumbers = 1 << 21;  // dimensions, strides and characters of all shapes

  OperatorLog() : shapes(1) {}

  // The number of the shape that was added under this key, nothing if there is none.
  std::optional<uint16_t> Find(uint64_t key) const;
  // Its number from now on; 0 if it does not fit any more.
  uint16_t Add(uint64_t key, OperatorShape shape);

  void Drop(OperatorKind kind);  // the calls of this kind
  void Sort();                   // calls by begin, the outer ones first

  std::vector<OperatorShape> shapes;  // the first one stands for all that do not fit
  PodVector<OperatorCall> calls;
  int64_t left_out = 0;  // calls whose shapes did not fit

 private:
  std::unordered_map<uint64_t, uint16_t> by_key_;
  size_t numbers_ = 0;
};

}  // namespace fullbore::timeline
