#include "explain/memory/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

namespace fullbore::memory {

namespace {

// What a pickle may take in memory for each of its bytes: one of a hundred thousand events takes four, a thousand empty
// lists forty.
constexpr size_t kMostTimes = 16;
constexpr size_t kAlways = 1 << 20;  // bytes: a small file of any shape

constexpr size_t kMostKeys = 256;  // of a dict that is looked into: each look goes through all of it

constexpr int kOldestProtocol = 2, kNewestProtocol = 5;

// The opcodes that are read, by their names in pickletools.
enum Op : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kBinBytes = 'B',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinUnicode = 'X',
  kAppend = 'a',
  kDict = 'd',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kList = 'l',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyList = ']',
  kEmptyTuple = ')',
  kEmptyDict = '}',
  kShortBinBytes = 'C',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kMemoize = 0x94,
  kFrame = 0x95,
};

// What the opcodes that are not read would do, where that is known.
const char* RefusedName(uint8_t op) {
  switch (op) {
    case 'c':
    case 0x93:
      return "imports a name";
    case 'R':
      return "calls a function";
    case 'b':
      return "sets the state of an object";
    case 'i':
    case 'o':
    case 0x81:
    case 0x92:
      return "makes an object of a class";
    case 'P':
    case 'Q':
      return "refers to an object outside";
    case 0x82:
    case 0x83:
    case 0x84:
      return "uses a registered extension";
    default:
      return nullptr;
  }
}

}  // namespace

class PickleReader {
 public:
  explicit PickleReader(std::string_view bytes)
      : bytes_(bytes), most_(std::max(kAlways, bytes.size() * kMostTimes)) {}

  Result<Pickle> Read() {
    while (!failure_ && !stopped_) Step();
    if (failure_) return *std::move(failure_);
    return std::move(pickle_);
  }

 private:
  using Kind = Pickle::Kind;
  using Node = Pickle::Node;
  static constexpr uint32_t kMarkOnStack = std::numeric_limits<uint32_t>::max();

  void Fail(std::string why, std::string hint = "") {
    if (failure_) return;
    failure_ = Error{ErrorCode::kCorrupt, fmt::format("byte {}: {}", op_at_, why), std::move(hint)};
  }

  // The next bytes, or none where there are not so many: then the pickle has failed.
  std::string_view Take(size_t size) {
    if (size > bytes_.size() - at_) {
      Fail("the pickle ends in the middle", "the file is not whole: copy or write it again");
      return {};
    }
    const std::string_view taken = bytes_.substr(at_, size);
    at_ += size;
    return taken;
  }

  template <typename T>
  T TakeNumber() {
    T number{};
    const std::string_view taken = Take(sizeof(T));
    if (!taken.empty()) std::memcpy(&number, taken.data(), sizeof(T));  // little-endian, as this machine is
    return number;
  }

  // Two's complement of any length, little-endian; what has no room in 64 bits becomes a float, as Python does it.
  void PushLong(size_t size) {
    const std::string_view taken = Take(size);
    if (failure_) return;
    uint64_t integer = 0;
    const bool negative = !taken.empty() && (taken.back() & 0x80) != 0;
    if (negative) integer = ~uint64_t{0};
    double number = negative ? -1 : 0;
    for (size_t i = taken.size(); i-- > 0;) {
      const auto byte = static_cast<uint8_t>(taken[i]);
      integer = integer << 8 | byte;
      number = number * 256 + byte;
    }
    const bool fits = taken.size() <= 8;
    Node node;
    node.kind = fits ? Kind::kInt : Kind::kFloat;
    if (fits)
      node.integer = std::bit_cast<int64_t>(integer);
    else
      node.number = number;
    Push(node);
  }

  bool Charge(size_t memory) {
    taken_ += memory;
    if (taken_ <= most_) return true;
    Fail(fmt::format("its values take more than {} times its size in memory", kMostTimes),
         "a memory snapshot does not: the file was made to fill the memory of its reader");
    return false;
  }

  void Push(const Node& node) {
    if (!Charge(sizeof(Node) + sizeof(uint32_t))) return;
    stack_.push_back(static_cast<uint32_t>(pickle_.nodes_.size()));
    pickle_.nodes_.push_back(node);
  }

  void PushInt(int64_t integer, Kind kind = Kind::kInt) {
    Node node;
    node.kind = kind;
    node.integer = integer;
    Push(node);
  }

  void PushText(size_t size) {
    const std::string_view taken = Take(size);
    if (failure_) return;
    if (size > std::numeric_limits<uint32_t>::max()) return Fail("a text of more than 4 GiB");
    Node node;
    node.kind = Kind::kText;
    node.text = taken.data();
    node.bytes = static_cast<uint32_t>(size);
    Push(node);
  }

  void PushContainer(Kind kind, std::span<const uint32_t> items) {
    if (!Charge(sizeof(std::vector<uint32_t>) + items.size() * sizeof(uint32_t))) return;
    Node node;
    node.kind = kind;
    node.container = static_cast<uint32_t>(pickle_.containers_.size());
    pickle_.containers_.emplace_back(items.begin(), items.end());
    Push(node);
  }

  // Where the items above the last mark begin on the stack; the mark lies before them.
  std::optional<size_t> AboveMark() {
    for (size_t i = stack_.size(); i-- > 0;) {
      if (stack_[i] == kMarkOnStack) return i + 1;
    }
    Fail("items without a mark before them");
    return std::nullopt;
  }

  bool Needs(size_t values) {
    if (stack_.size() < values) {
      Fail("too few values on the stack");
      return false;
    }
    for (size_t i = stack_.size() - values; i < stack_.size(); ++i) {
      if (stack_[i] != kMarkOnStack) continue;
      Fail("a mark where a value is expected");
      return false;
    }
    return true;
  }

  void FromMark(Kind kind) {
    const auto first = AboveMark();
    if (!first) return;
    const std::vector<uint32_t> items(stack_.begin() + static_cast<ptrdiff_t>(*first), stack_.end());
    if (kind == Kind::kDict && items.size() % 2 != 0) return Fail("a key without a value");
    stack_.resize(*first - 1);
    PushContainer(kind, items);
  }

  void Tuple(size_t size) {
    if (!Needs(size)) return;
    const std::vector<uint32_t> items(stack_.end() - static_cast<ptrdiff_t>(size), stack_.end());
    stack_.resize(stack_.size() - size);
    PushContainer(Kind::kList, items);
  }

  // Moves what lies above `first` on the stack into the container before `end`.
  void Extend(Kind kind, size_t first, size_t end) {
    const size_t count = stack_.size() - first;
    if (kind == Kind::kDict && count % 2 != 0) return Fail("a key without a value");
    if (end == 0 || stack_[end - 1] == kMarkOnStack) return Fail("items without a container for them");
    const Node& node = pickle_.nodes_[stack_[end - 1]];
    if (node.kind != kind) return Fail("items for a container of another kind");
    auto& items = pickle_.containers_[node.container];
    // What a growing vector leaves behind is given back at once, and what it holds in advance is its last doubling.
    if (!Charge(count * sizeof(uint32_t))) return;
    items.insert(items.end(), stack_.begin() + static_cast<ptrdiff_t>(first), stack_.end());
    stack_.resize(end);
  }

  void ExtendFromMark(Kind kind) {
    const auto first = AboveMark();
    if (first) Extend(kind, *first, *first - 1);
  }

  void ExtendByOne(Kind kind, size_t values) {
    if (Needs(values + 1)) Extend(kind, stack_.size() - values, stack_.size() - values);
  }

  void Put(size_t number) {
    if (!Needs(1)) return;
    if (number > bytes_.size())
      return Fail(fmt::format("note {} of a pickle of {} bytes", number, bytes_.size()));
    if (number >= memo_.size()) {
      if (!Charge((number + 1 - memo_.size()) * sizeof(uint32_t))) return;
      memo_.resize(number + 1, kMarkOnStack);
    }
    memo_[number] = stack_.back();
  }

  void Get(size_t number) {
    if (number >= memo_.size() || memo_[number] == kMarkOnStack)
      return Fail(fmt::format("note {} was never made", number));
    if (Charge(sizeof(uint32_t))) stack_.push_back(memo_[number]);
  }

  void Protocol() {
    const int version = TakeNumber<uint8_t>();
    if (failure_ || (version >= kOldestProtocol && version <= kNewestProtocol)) return;
    Fail(fmt::format("protocol {}, where {} to {} are read", version, kOldestProtocol, kNewestProtocol));
  }

  void Stop() {
    if (!Needs(1)) return;
    pickle_.root_ = stack_.back();
    stopped_ = true;
  }

  void BinFloat() {  // big-endian
    uint64_t bits = 0;
    for (const char byte : Take(8)) bits = bits << 8 | static_cast<uint8_t>(byte);
    Node node;
    node.kind = Kind::kFloat;
    node.number = std::bit_cast<double>(bits);
    Push(node);
  }

  void Refuse(uint8_t op) {
    if (const char* does = RefusedName(op)) {
      return Fail(
          fmt::format("the pickle {}, which a memory snapshot never does", does),
          "nothing in it was run; do not load the file with Python if you do not trust where it comes from");
    }
    Fail(fmt::format("opcode 0x{:02x} is none of a memory snapshot's", op),
         "torch.cuda.memory._dump_snapshot(FILE) writes what is read here");
  }

  void Step() {
    op_at_ = at_;
    const auto op = TakeNumber<uint8_t>();
    if (failure_) return;
    switch (op) {
      case kProto:
        return Protocol();
      case kFrame:
        return static_cast<void>(Take(8));  // how much follows: only of use to who reads piece by piece
      case kStop:
        return Stop();
      case kMark:
        return Charge(sizeof(uint32_t)) ? stack_.push_back(kMarkOnStack) : void();
      case kPop:
        return stack_.empty() ? Fail("nothing to take away") : stack_.pop_back();
      case kPopMark:
        return Forget();
      case kDup:
        return Needs(1) && Charge(sizeof(uint32_t)) ? stack_.push_back(stack_.back()) : void();
      case kNone:
        return Push({});
      case kNewTrue:
        return PushInt(1, Kind::kBool);
      case kNewFalse:
        return PushInt(0, Kind::kBool);
      case kBinInt:
        return PushInt(TakeNumber<int32_t>());
      case kBinInt1:
        return PushInt(TakeNumber<uint8_t>());
      case kBinInt2:
        return PushInt(TakeNumber<uint16_t>());
      case kLong1:
        return PushLong(TakeNumber<uint8_t>());
      case kLong4:
        return PushLong(TakeNumber<uint32_t>());
      case kBinFloat:
        return BinFloat();
      case kShortBinUnicode:
      case kShortBinBytes:
        return PushText(TakeNumber<uint8_t>());
      case kBinUnicode:
      case kBinBytes:
        return PushText(TakeNumber<uint32_t>());
      case kBinUnicode8:
      case kBinBytes8:
        return PushText(TakeNumber<uint64_t>());
      case kEmptyList:
      case kEmptyTuple:
        return PushContainer(Kind::kList, {});
      case kEmptyDict:
        return PushContainer(Kind::kDict, {});
      case kList:
      case kTuple:
        return FromMark(Kind::kList);
      case kDict:
        return FromMark(Kind::kDict);
      case kTuple1:
        return Tuple(1);
      case kTuple2:
        return Tuple(2);
      case kTuple3:
        return Tuple(3);
      case kAppend:
        return ExtendByOne(Kind::kList, 1);
      case kAppends:
        return ExtendFromMark(Kind::kList);
      case kSetItem:
        return ExtendByOne(Kind::kDict, 2);
      case kSetItems:
        return ExtendFromMark(Kind::kDict);
      case kMemoize:
        return Put(next_note_++);
      case kBinPut:
        return Put(TakeNumber<uint8_t>());
      case kLongBinPut:
        return Put(TakeNumber<uint32_t>());
      case kBinGet:
        return Get(TakeNumber<uint8_t>());
      case kLongBinGet:
        return Get(TakeNumber<uint32_t>());
      default:
        return Refuse(op);
    }
  }

  void Forget() {
    if (const auto first = AboveMark()) stack_.resize(*first - 1);
  }

  const std::string_view bytes_;
  const size_t most_;  // bytes of memory
  size_t at_ = 0, op_at_ = 0, taken_ = 0, next_note_ = 0;
  bool stopped_ = false;
  std::vector<uint32_t> stack_, memo_;  // of values; a mark, or a note never made, is kMarkOnStack
  Pickle pickle_;
  std::optional<Error> failure_;
};

std::optional<int64_t> Value::Int() const {
  if (missing()) return std::nullopt;
  const auto& node = pickle_->NodeOf(index_);
  const bool is_int = node.kind == Pickle::Kind::kInt || node.kind == Pickle::Kind::kBool;
  return is_int ? std::optional(node.integer) : std::nullopt;
}

std::optional<double> Value::Number() const {
  if (const auto integer = Int()) return static_cast<double>(*integer);
  if (missing() || pickle_->NodeOf(index_).kind != Pickle::Kind::kFloat) return std::nullopt;
  return pickle_->NodeOf(index_).number;
}

std::optional<std::string_view> Value::Text() const {
  if (missing()) return std::nullopt;
  const auto& node = pickle_->NodeOf(index_);
  if (node.kind != Pickle::Kind::kText) return std::nullopt;
  return std::string_view(node.text, node.bytes);
}

bool Value::is_list() const { return !missing() && pickle_->NodeOf(index_).kind == Pickle::Kind::kList; }
bool Value::is_dict() const { return !missing() && pickle_->NodeOf(index_).kind == Pickle::Kind::kDict; }

size_t Value::size() const {
  if (!is_list() && !is_dict()) return 0;
  const size_t items = pickle_->containers_[pickle_->NodeOf(index_).container].size();
  return is_dict() ? items / 2 : items;
}

Value Value::operator[](size_t at) const {
  if (!is_list() || at >= size()) return {};
  return {pickle_, pickle_->containers_[pickle_->NodeOf(index_).container][at]};
}

Value Value::At(std::string_view key) const {
  if (!is_dict() || size() > kMostKeys) return {};
  const auto& items = pickle_->containers_[pickle_->NodeOf(index_).container];
  for (size_t i = items.size(); i >= 2; i -= 2) {
    if (Value(pickle_, items[i - 2]).Text() == key) return {pickle_, items[i - 1]};
  }
  return {};
}

bool LooksLikePickle(std::string_view head) {
  return head.size() >= 2 && static_cast<uint8_t>(head[0]) == kProto && head[1] >= kOldestProtocol &&
         head[1] <= kNewestProtocol;
}

Result<Pickle> ReadPickle(std::string_view bytes) { return PickleReader(bytes).Read(); }

}  // namespace fullbore::memory
