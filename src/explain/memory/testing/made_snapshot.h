// Snapshots made by hand, as pickles.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace fullbore::memory {

// Writes pickles of protocol 4, without what would be shared.
class PickleWriter {
 public:
  PickleWriter& Text(std::string_view text) {
    out_ += '\x8c';
    out_ += static_cast<char>(text.size());
    out_ += text;
    return *this;
  }
  PickleWriter& Int(int64_t value) {
    out_ += "\x8a\x08";
    char bytes[8];
    std::memcpy(bytes, &value, 8);
    out_.append(bytes, 8);
    return *this;
  }
  PickleWriter& Open(char empty) {  // ']' or '}'
    out_ += empty;
    out_ += '(';
    return *this;
  }
  PickleWriter& Close(char items) {  // 'e' or 'u'
    out_ += items;
    return *this;
  }
  PickleWriter& Pair(std::string_view key, int64_t value) { return Text(key).Int(value); }
  PickleWriter& Pair(std::string_view key, std::string_view value) { return Text(key).Text(value); }
  std::string Take() { return out_ + "."; }

 private:
  std::string out_{"\x80\x04", 2};
};

inline PickleWriter& Frames(PickleWriter& to) {
  return to.Text("frames")
      .Open(']')
      .Open('}')
      .Pair("filename", "/home/me/train.py")
      .Pair("name", "forward")
      .Pair("line", 42)
      .Close('u')
      .Close('e');
}

// A segment with a block of a size and one of 1 MiB, and two events.
inline std::string MadeSnapshot(int64_t block_bytes = 1 << 20) {
  PickleWriter to;
  to.Open('}').Text("segments").Open(']').Open('}');
  to.Pair("device", 1).Pair("address", 4096).Pair("total_size", 2 << 20).Pair("stream", 7);
  to.Pair("segment_type", "small").Text("blocks").Open(']');
  to.Open('}').Pair("size", block_bytes).Pair("requested_size", 1000).Pair("state", "active_allocated");
  Frames(to).Close('u');
  to.Open('}').Pair("size", 1 << 20).Pair("state", "inactive").Close('u');
  to.Close('e').Close('u').Close('e');
  to.Text("device_traces").Open(']').Open(']').Close('e').Open(']');
  to.Open('}')
      .Pair("action", "alloc")
      .Pair("addr", 4096)
      .Pair("size", 1000)
      .Pair("stream", 7)
      .Pair("time_us", 5);
  Frames(to).Close('u');
  to.Open('}').Pair("action", "oom").Pair("device_free", 77).Pair("size", 1 << 30).Close('u');
  to.Close('e').Close('e').Close('u');
  return to.Take();
}

}  // namespace fullbore::memory
