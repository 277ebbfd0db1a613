#include "explain/ingest/kineto/json_window.h"

#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace fullbore::ingest::kineto {
namespace {

// A bit a character of the 16 at p. Reads up to 15 bytes past the text: the padding is there for that.
#if defined(__SSE2__)
inline __m128i Load(const char* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
inline uint32_t Equal(__m128i v, char c) {
  return static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8(c))));
}
inline uint32_t QuotesAndEscapes(const char* p) {
  const __m128i v = Load(p);
  return Equal(v, '"') | Equal(v, '\\');
}
inline uint32_t Structure(const char* p) {
  const __m128i v = Load(p);
  const __m128i folded = _mm_or_si128(v, _mm_set1_epi8(0x20));  // [ and ] fold onto { and }
  return Equal(v, '"') | Equal(folded, '{') | Equal(folded, '}');
}
#else
inline uint32_t QuotesAndEscapes(const char* p) {
  uint32_t mask = 0;
  for (int i = 0; i < 16; ++i) mask |= static_cast<uint32_t>(p[i] == '"' || p[i] == '\\') << i;
  return mask;
}
inline uint32_t Structure(const char* p) {
  uint32_t mask = 0;
  for (int i = 0; i < 16; ++i) {
    const char folded = static_cast<char>(p[i] | 0x20);
    mask |= static_cast<uint32_t>(p[i] == '"' || folded == '{' || folded == '}') << i;
  }
  return mask;
}
#endif

bool EndsScalar(char c) {
  return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\0';
}

}  // namespace

const char* SkipString(const char* p, const char* end) {
  while (p < end) {
    const uint32_t mask = QuotesAndEscapes(p);
    if (mask == 0) {
      p += 16;
      continue;
    }
    p += __builtin_ctz(mask);
    if (p >= end) return nullptr;
    if (*p == '"') return p + 1;
    p += 2;  // the escaped character cannot end the string
  }
  return nullptr;
}

const char* SkipContainer(const char* p, const char* end) {
  int depth = 1;
  while (p < end) {
    uint32_t mask = Structure(p);
    const char* next = p + 16;
    while (mask != 0) {
      const char* at = p + __builtin_ctz(mask);
      mask &= mask - 1;
      if (at >= end) return nullptr;
      if (*at == '"') {
        next = SkipString(at + 1, end);
        if (next == nullptr) return nullptr;
        if (next >= p + 16) break;
        mask &= ~0U << (next - p);
        next = p + 16;
      } else if ((*at | 0x20) == '{') {
        ++depth;
      } else if (--depth == 0) {
        return at + 1;
      }
    }
    p = next;
  }
  return nullptr;
}

const char* SkipValue(const char* p, const char* end) {
  if (*p == '"') return SkipString(p + 1, end);
  if (*p == '{' || *p == '[') return SkipContainer(p + 1, end);
  while (!EndsScalar(*p)) ++p;
  return p >= end ? nullptr : p;
}

JsonWindow::JsonWindow(std::unique_ptr<ByteSource> source, size_t initial_bytes)
    : source_(std::move(source)), text_(initial_bytes + kPadding) {}

bool JsonWindow::Grow() {
  if (at_end_ || failed_) return false;
  const size_t capacity = text_.size() - kPadding;
  if (begin_ > 0) {  // slide
    std::memmove(text_.data(), text_.data() + begin_, end_ - begin_);
    offset_ += static_cast<int64_t>(begin_);
    end_ -= begin_;
    begin_ = 0;
  } else if (end_ == capacity) {
    if (capacity >= kMaxValue) return false;
    text_.resize(capacity * 2 + kPadding);
  }
  const size_t before = end_;
  while (end_ < text_.size() - kPadding) {
    auto got = source_->Read(text_.data() + end_, text_.size() - kPadding - end_);
    if (!got) {
      error_ = got.error();
      failed_ = true;
      break;
    }
    if (*got == 0) {
      at_end_ = true;
      break;
    }
    end_ += *got;
  }
  std::memset(text_.data() + end_, 0, kPadding);
  return end_ > before;
}

char JsonWindow::Peek() {
  for (;;) {
    const char* p = SkipBlanks(cursor());
    MoveTo(p);
    if (p < end()) return *p;
    if (!Grow()) return '\0';
  }
}

void JsonWindow::SkipByteOrderMark() {
  if (Peek() == '\xef' && std::memcmp(cursor(), "\xef\xbb\xbf", 3) == 0) MoveTo(cursor() + 3);
}

std::string_view JsonWindow::TakeValue() {
  if (Peek() == '\0') return {};
  for (;;) {
    const char* value = cursor();
    const char* after = SkipValue(value, end());
    if (after == nullptr && at_end_ && *value != '"' && *value != '{' && *value != '[') after = end();
    if (after != nullptr) {
      MoveTo(after);
      return {value, static_cast<size_t>(after - value)};
    }
    if (!Grow()) return {};
  }
}

bool JsonWindow::SkipAny() {
  const char first = Peek();
  if (first != '{' && first != '[' && first != '"') return !TakeValue().empty();
  bool in_string = false;
  bool escaped = false;
  int depth = 0;
  for (;;) {
    for (const char* p = cursor(); p < end(); ++p) {
      if (in_string) {
        if (escaped) {
          escaped = false;
        } else if (*p == '\\') {
          escaped = true;
        } else if (*p == '"') {
          in_string = false;
        }
      } else if (*p == '"') {
        in_string = true;
      } else if (*p == '{' || *p == '[') {
        ++depth;
      } else if (*p == '}' || *p == ']') {
        --depth;
      }
      if (!in_string && depth == 0) {
        MoveTo(p + 1);
        return true;
      }
    }
    MoveTo(end());
    if (!Grow()) return false;
  }
}

}  // namespace fullbore::ingest::kineto
