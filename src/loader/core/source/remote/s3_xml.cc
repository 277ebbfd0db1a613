#include "loader/core/source/remote/s3_xml.h"

#include <charconv>
#include <functional>

#include "base/text.h"
#include "base/utf8.h"

namespace fullbore::loader::remote {
namespace {

constexpr size_t kMostDepth = 16;  // S3's own answers have 4

// "amp", "#38", "#x26"; false for anything else.
bool AppendEntity(std::string& out, std::string_view name) {
  if (name == "amp") return out += '&', true;
  if (name == "lt") return out += '<', true;
  if (name == "gt") return out += '>', true;
  if (name == "quot") return out += '"', true;
  if (name == "apos") return out += '\'', true;
  if (!name.starts_with('#')) return false;
  name.remove_prefix(1);
  const int base = name.starts_with('x') ? 16 : 10;
  if (base == 16) name.remove_prefix(1);
  uint32_t code = 0;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), code, base);
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (name.empty() || failed != std::errc() || end != name.data() + name.size() || code > 0x10ffff ||
      surrogate) {
    return false;
  }
  AppendUtf8(&out, code);
  return true;
}

bool AppendText(std::string& out, std::string_view raw) {
  while (!raw.empty()) {
    const size_t ampersand = raw.find('&');
    out += raw.substr(0, ampersand);
    if (ampersand == std::string_view::npos) return true;
    raw.remove_prefix(ampersand + 1);
    const size_t semicolon = raw.find(';');
    if (semicolon == std::string_view::npos || !AppendEntity(out, raw.substr(0, semicolon))) return false;
    raw.remove_prefix(semicolon + 1);
  }
  return true;
}

// "ns:Key attribute='x'" -> "Key".
std::string_view LocalName(std::string_view tag) {
  tag = tag.substr(0, tag.find_first_of(" \t\r\n"));
  const size_t colon = tag.rfind(':');
  return colon == std::string_view::npos ? tag : tag.substr(colon + 1);
}

// Calls `leave` with each element's path ("ListBucketResult/Contents/Key") and its own text when it ends.
class XmlWalk {
 public:
  using Leave = std::function<void(const std::string& path, const std::string& text)>;

  XmlWalk(std::string_view xml, Leave leave) : rest_(xml), leave_(std::move(leave)) {}

  // False where the text is not well-formed, or ends inside an element.
  bool Run() {
    while (!rest_.empty()) {
      const size_t open = rest_.find('<');
      const std::string_view text = rest_.substr(0, open);
      if (!open_.empty() && !AppendText(open_.back().text, text)) return false;
      if (open == std::string_view::npos) break;
      rest_.remove_prefix(open);
      if (!TakeMarkup()) return false;
    }
    return open_.empty() && seen_root_;
  }

 private:
  struct Element {
    std::string name, text;
    size_t path_bytes;  // of the path without it
  };

  bool SkipPast(std::string_view end) {
    const size_t at = rest_.find(end);
    if (at == std::string_view::npos) return false;
    rest_.remove_prefix(at + end.size());
    return true;
  }

  bool TakeMarkup() {
    if (rest_.starts_with("<?")) return SkipPast("?>");
    if (rest_.starts_with("<!--")) return SkipPast("-->");
    if (rest_.starts_with("<![CDATA[")) {
      const size_t end = rest_.find("]]>");
      if (end == std::string_view::npos || open_.empty()) return false;
      open_.back().text += rest_.substr(9, end - 9);
      return SkipPast("]]>");
    }
    if (rest_.starts_with("<!")) return false;  // a DOCTYPE: entities of its own are no part of S3
    const size_t close = rest_.find('>');
    if (close == std::string_view::npos) return false;
    std::string_view tag = rest_.substr(1, close - 1);
    rest_.remove_prefix(close + 1);
    if (tag.starts_with('/')) return End(LocalName(tag.substr(1)));
    const bool empty = tag.ends_with('/');
    if (empty) tag.remove_suffix(1);
    const std::string_view name = LocalName(tag);
    return Begin(name) && (!empty || End(name));
  }

  bool Begin(std::string_view name) {
    if (name.empty() || open_.size() == kMostDepth || (open_.empty() && seen_root_)) return false;
    seen_root_ = true;
    open_.push_back({std::string(name), "", path_.size()});
    path_ += (path_.empty() ? "" : "/") + std::string(name);
    return true;
  }

  bool End(std::string_view name) {
    if (open_.empty() || open_.back().name != name) return false;
    leave_(path_, open_.back().text);
    path_.resize(open_.back().path_bytes);
    open_.pop_back();
    return true;
  }

  std::string_view rest_;
  const Leave leave_;
  std::vector<Element> open_;
  std::string path_;
  bool seen_root_ = false;
};

}  // namespace

Result<S3ListPage> ParseS3ListPage(std::string_view xml) {
  S3ListPage page;
  S3Object object;
  bool listing = false, truncated = false, numbers = true;
  XmlWalk walk(xml, [&](const std::string& path, const std::string& text) {
    constexpr std::string_view kRoot = "ListBucketResult";
    if (path == kRoot) listing = true;
    if (!path.starts_with(kRoot) || path.size() <= kRoot.size()) return;
    const std::string_view field = std::string_view(path).substr(kRoot.size() + 1);
    if (field == "Contents/Key") object.key = text;
    if (field == "Contents/ETag") object.etag = text;
    if (field == "Contents/LastModified") object.last_modified = text;
    if (field == "Contents/Size") {
      const auto bytes = ParseInt(Trim(text));
      numbers = numbers && bytes && *bytes >= 0;
      object.bytes = static_cast<uint64_t>(bytes.value_or(0));
    }
    if (field == "Contents") page.objects.push_back(std::exchange(object, {}));
    if (field == "IsTruncated") truncated = Trim(text) == "true";
    if (field == "NextContinuationToken") page.next_token = text;
  });
  if (!walk.Run() || !listing || !numbers) {
    return Error{ErrorCode::kCorrupt, "the answer is no complete ListBucketResult", ""};
  }
  if (truncated && page.next_token.empty()) {
    return Error{ErrorCode::kCorrupt, "the listing is truncated, but has no NextContinuationToken", ""};
  }
  if (!truncated) page.next_token.clear();
  return page;
}

std::optional<S3ErrorText> ParseS3Error(std::string_view xml) {
  S3ErrorText error;
  XmlWalk walk(xml, [&](const std::string& path, const std::string& text) {
    if (path == "Error/Code") error.code = text;
    if (path == "Error/Message") error.message = text;
    if (path == "Error/Region") error.region = text;
  });
  // One that is cut off still says what is wrong.
  walk.Run();
  if (error.code.empty()) return std::nullopt;
  return error;
}

}  // namespace fullbore::loader::remote
