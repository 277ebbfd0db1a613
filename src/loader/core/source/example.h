// tf.train.Example on the wire, without its library: protocol buffers with a message, a map and three lists.
//
//   Example   { Features features = 1; }
//   Features  { map<string, Feature> feature = 1; }     an entry: string key = 1; Feature value = 2;
//   Feature   { BytesList bytes_list = 1; | FloatList float_list = 2; | Int64List int64_list = 3; }
//   ...List   { repeated ... value = 1; }                numbers packed or not
//
// The input may be anything: nothing is read beyond the bytes, and nothing is allocated.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace fullbore::loader {

enum class FeatureKind { kNone, kBytes, kFloats, kIntegers };

struct Feature {
  FeatureKind kind = FeatureKind::kNone;  // kNone: an empty feature, which TensorFlow writes for "missing"
  uint64_t count = 0;                     // values
  std::span<const uint8_t> bytes;         // kBytes: the first value
  std::span<const uint8_t> list;          // the encoded list
};

// False if the bytes are not an Example. As in protocol buffers, the last entry of a name counts.
using FeatureVisitor = std::function<void(std::string_view name, const Feature& feature)>;
bool ParseExample(std::span<const uint8_t> example, const FeatureVisitor& visit);

// The values of a list that ParseExample returned: `out` has 4 * count (floats) or 8 * count bytes.
void CopyFloats(const Feature& feature, uint8_t* out);
void CopyIntegers(const Feature& feature, uint8_t* out);
int64_t FirstInteger(const Feature& feature);  // count >= 1

}  // namespace fullbore::loader
