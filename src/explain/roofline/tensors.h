// Small steps over the arguments of operators, shared by the families.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "explain/roofline/work.h"

namespace fullbore::roofline {

using timeline::ElementType;
using timeline::OperatorInput;
using timeline::OperatorShape;

// The argument, or one that is not a tensor where there are fewer.
const OperatorInput& Input(const OperatorShape& shape, size_t i);

double Count(const std::vector<int64_t>& dims);  // elements, as a double: products of sizes do not overflow
double Stored(const OperatorInput& input);       // elements in memory: those of an expanded dimension once
bool Dense(const OperatorInput& input);          // its elements lie side by side, in whatever order

// Sums bytes; the sum is unknown as soon as a part is.
class ByteSum {
 public:
  void Add(double elements, ElementType type) {
    const int64_t bytes = timeline::ElementBytes(type);
    if (elements > 0 && bytes == 0) known_ = false;
    sum_ += elements * static_cast<double>(bytes);
  }
  void Read(const OperatorInput& input) {
    if (input.tensor()) Add(Stored(input), input.type);
  }
  std::optional<double> sum() const { return known_ ? std::optional<double>(sum_) : std::nullopt; }

 private:
  double sum_ = 0;
  bool known_ = true;
};

// The type of a result, as PyTorch promotes the types of tensors; numbers do not count.
ElementType Promoted(const OperatorShape& shape);
// The dimensions that tensors are expanded to; nothing where they do not fit each other.
std::optional<std::vector<int64_t>> Broadcast(const OperatorShape& shape);

// "[2, 2]", "(2,2)" or "2".
std::vector<int64_t> NumbersIn(std::string_view text);
bool IsTrue(std::string_view text);

// The families.
void CountProduct(const OperatorShape& shape, std::string_view name, Work* work);
void CountConvolution(const OperatorShape& shape, const Context& context, Work* work);
void CountConvolutionBackward(const OperatorShape& shape, std::string_view name, const Context& context,
                              Work* work);
void CountAttention(const OperatorShape& shape, std::string_view name, Work* work);
void CountMoe(const OperatorShape& shape, Work* work);
void CountNormalisation(const OperatorShape& shape, Work* work);
void CountReduction(const OperatorShape& shape, std::string_view name, Work* work);
void CountElementwise(const OperatorShape& shape, std::string_view name, Work* work);
void CountMoves(const OperatorShape& shape, std::string_view name, const Context& context, Work* work);
void CountOptimizer(const OperatorShape& shape, std::string_view name, const Context& context, Work* work);

}  // namespace fullbore::roofline
