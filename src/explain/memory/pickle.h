// A pickle of Python, read without running anything in it: containers, numbers and text. What would import or call
// (GLOBAL, REDUCE, BUILD and their kin) is an error, as is what needs more memory than its size allows.
//
//   auto pickle = memory::ReadPickle(bytes);
//   const Value root = pickle->root();
//   for (const Value segment : root.At("segments").Items()) { ... }
//
// Protocols 2 to 5, https://github.com/python/cpython/blob/main/Lib/pickletools.py. Values are stored once, however
// often the pickle refers to them: two of one identity have one index(), which is how what thousands of events share is
// read once. Nothing here recurses, so depth costs no stack.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fullbore::memory {

class Pickle;

// One value of a pickle, which has to live longer. A missing one says so of everything asked of it, so that a path
// through a file of unknown make needs one test, at its end.
class Value {
 public:
  Value() = default;  // missing

  bool missing() const { return pickle_ == nullptr; }
  uint32_t index() const { return index_; }

  std::optional<int64_t> Int() const;  // of an integer or a truth value
  std::optional<double> Number() const;
  std::optional<std::string_view> Text() const;
  bool IsTrue() const { return Int().value_or(0) != 0; }

  bool is_list() const;  // or a tuple
  bool is_dict() const;
  size_t size() const;                // of a list, a tuple or a dict; else 0
  Value operator[](size_t at) const;  // of a list or a tuple
  // Of a dict: the last of that name, as in Python; missing in one of more keys than a record has.
  Value At(std::string_view key) const;

 private:
  friend class Pickle;
  Value(const Pickle* pickle, uint32_t index) : pickle_(pickle), index_(index) {}

  const Pickle* pickle_ = nullptr;
  uint32_t index_ = 0;
};

// Owns its values, not its bytes: texts lie in what was given to ReadPickle.
class Pickle {
 public:
  Value root() const { return {this, root_}; }

 private:
  friend class Value;
  friend class PickleReader;
  enum class Kind : uint8_t { kNone, kBool, kInt, kFloat, kText, kList, kDict };

  struct Node {
    Kind kind = Kind::kNone;
    union {
      int64_t integer;
      double number;
      const char* text;
      uint32_t container;  // in containers_
    };
    uint32_t bytes = 0;  // of a text
  };

  const Node& NodeOf(uint32_t index) const { return nodes_[index]; }

  std::vector<Node> nodes_;
  // The items of lists and tuples; of dicts keys and values in turn.
  std::vector<std::vector<uint32_t>> containers_;
  uint32_t root_ = 0;
};

// Whether `head`, the first bytes of a file, can begin a pickle that ReadPickle reads.
bool LooksLikePickle(std::string_view head);

// `bytes` outlive the pickle. Errors say at which byte.
Result<Pickle> ReadPickle(std::string_view bytes);

}  // namespace fullbore::memory
