#include "explain/ingest/kineto/operator_args.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "explain/ingest/kineto/json_window.h"

namespace fullbore::ingest::kineto {

using timeline::OperatorInput;

namespace {

// Walks the elements of an array, as Members does those of an object: strings without their quotes.
class Elements {
 public:
  explicit Elements(std::string_view array) {
    if (array.empty() || array[0] != '[') return;
    p_ = array.data() + 1;
    end_ = array.data() + array.size();
  }
  bool Next() {
    if (p_ == nullptr) return false;
    p_ = SkipBlanks(p_);
    if (*p_ == ',') p_ = SkipBlanks(p_ + 1);
    if (p_ >= end_ || *p_ == ']') return false;
    const char* after = SkipValue(p_, end_);
    if (after == nullptr || after == p_) return false;
    value_ = *p_ == '"' ? std::string_view(p_ + 1, static_cast<size_t>(after - p_) - 2)
                        : std::string_view(p_, static_cast<size_t>(after - p_));
    p_ = after;
    return true;
  }
  std::string_view value() const { return value_; }

 private:
  const char* p_ = nullptr;
  const char* end_ = nullptr;
  std::string_view value_;
};

bool IsListOfLists(std::string_view array) {
  Elements elements(array);
  return elements.Next() && elements.value().starts_with('[');
}

// Nothing where one of them is no number, or there are too many.
std::optional<std::vector<int64_t>> Numbers(std::string_view array) {
  std::vector<int64_t> numbers;
  for (Elements elements(array); elements.Next();) {
    const auto number = Integer(elements.value());
    if (!number || *number < 0 || *number > kMaxElements || numbers.size() == kMaxDimensions)
      return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

// -1 where it is beyond what a machine holds.
int64_t BoundedProduct(const std::vector<int64_t>& dims) {
  int64_t product = 1;
  bool empty = false;
  for (const int64_t dim : dims) {
    empty = empty || dim == 0;
    if (dim > 1 && __builtin_mul_overflow(product, dim, &product)) return -1;
    if (product > kMaxElements) return -1;
  }
  return empty ? 0 : product;
}

void TakeDims(std::string_view array, OperatorInput* input) {
  if (!IsListOfLists(array)) {
    auto dims = Numbers(array);
    if (dims && BoundedProduct(*dims) >= 0) input->dims = std::move(*dims);
    return;
  }
  for (Elements tensors(array); tensors.Next();) {
    const auto dims = Numbers(tensors.value());
    const int64_t elements = dims ? BoundedProduct(*dims) : -1;
    if (elements < 0 || elements > kMaxElements - input->list_elements) {
      input->list_tensors = input->list_elements = 0;
      return;
    }
    ++input->list_tensors;
    input->list_elements += elements;
  }
}

}  // namespace

void OperatorArgs::Take(std::string_view key, std::string_view value) {
  if (key == "Input Dims")
    dims = value;
  else if (key == "Input type")
    types = value;
  else if (key == "Input Strides")
    strides = value;
  else if (key == "Concrete Inputs")
    concretes = value;
}

timeline::OperatorShape ParseOperator(const OperatorArgs& args, timeline::NameId name,
                                      timeline::OperatorKind kind) {
  timeline::OperatorShape shape;
  shape.name = name;
  shape.kind = kind;
  for (Elements dims(args.dims); dims.Next() && shape.inputs.size() < kMaxInputs;)
    TakeDims(dims.value(), &shape.inputs.emplace_back());
  size_t i = 0;
  for (Elements types(args.types); types.Next() && i < shape.inputs.size(); ++i)
    shape.inputs[i].type = timeline::TypeNamed(types.value());
  i = 0;
  for (Elements strides(args.strides); strides.Next() && i < shape.inputs.size(); ++i) {
    OperatorInput& input = shape.inputs[i];
    if (!input.tensor() || IsListOfLists(strides.value())) continue;
    auto numbers = Numbers(strides.value());
    if (numbers && numbers->size() == input.dims.size()) input.strides = std::move(*numbers);
  }
  if (!timeline::ConcretesMatter(kind)) return shape;
  i = 0;
  for (Elements concretes(args.concretes); concretes.Next() && i < kMaxInputs; ++i) {
    if (i == shape.inputs.size()) shape.inputs.emplace_back();  // lists may be of different lengths
    if (concretes.value().size() <= kMaxConcreteBytes) shape.inputs[i].concrete = concretes.value();
  }
  return shape;
}

void OperatorReader::Take(const Call& call, std::string_view args) {
  OperatorArgs texts;
  for (Members members(args); members.Next();) texts.Take(members.key(), members.value());
  if (texts.dims.empty()) return;
  // Scalars that change with every step (a learning rate) must not make a new shape of every call.
  const std::string_view concretes =
      timeline::ConcretesMatter(call.kind) ? texts.concretes : std::string_view();
  uint64_t key = call.name;  // multiplied on the way, so that a text counts by its place
  for (const std::string_view text : {texts.dims, texts.types, texts.strides, concretes})
    key = (key ^ std::hash<std::string_view>()(text)) * 0x9e3779b97f4a7c15U;
  auto number = log_->Find(key);
  if (!number) number = log_->Add(key, ParseOperator(texts, call.name, call.kind));
  if (*number == 0) {
    ++log_->left_out;
    return;
  }
  timeline::OperatorCall kept;
  kept.begin_ns = call.begin_ns;
  kept.duration_ns =
      static_cast<uint32_t>(std::min<int64_t>(call.end_ns - call.begin_ns, timeline::OperatorCall::kMaxNs));
  kept.shape = *number;
  kept.thread = call.thread;
  log_->calls.push_back(kept);
}

}  // namespace fullbore::ingest::kineto
