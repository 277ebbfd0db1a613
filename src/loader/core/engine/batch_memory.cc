#include "fullbore/loader/batch_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>

#include "base/text.h"

namespace fullbore::loader {
namespace {

Error NoMemory(size_t bytes, int error_number) {
  Error error = ErrnoError(
      fmt::format("cannot allocate {} of memory for a batch", FormatBytes(static_cast<double>(bytes))),
      error_number);
  error.code = ErrorCode::kNoSpace;
  error.hint = "reduce batch_size or prefetch_batches";
  return error;
}

class Private : public BatchMemory {
 public:
  Result<MemoryBlock> Allocate(size_t bytes) override {
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return NoMemory(bytes, errno);
    (void)madvise(data, bytes, MADV_HUGEPAGE);  // a wish
    return MemoryBlock{data, bytes};
  }
  void Free(MemoryBlock block) override { munmap(block.data, block.bytes); }
};

}  // namespace

std::shared_ptr<BatchMemory> PrivateMemory() { return std::make_shared<Private>(); }

}  // namespace fullbore::loader
