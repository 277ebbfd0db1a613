#include "loader/core/source/remote/s3_xml.h"

#include <pugixml.hpp>
#include <utility>

#include "base/text.h"

namespace fullbore::loader::remote {
namespace {

// Texts exactly as they are: a key may consist of blanks or contain any line break.
constexpr unsigned kParse = pugi::parse_escapes | pugi::parse_cdata | pugi::parse_ws_pcdata_single;

// True if the text is well-formed to its end. Otherwise `document` has what precedes the damage.
bool Load(std::string_view xml, pugi::xml_document* document) {
  const auto parsed = document->load_buffer(xml.data(), xml.size(), kParse, pugi::encoding_utf8);
  const pugi::xml_node root = document->document_element();
  return parsed && !root.next_sibling() && !root.previous_sibling();
}

// All of an element's own text: plain text and CDATA may alternate.
std::string TextOf(const pugi::xml_node& element) {
  std::string text;
  for (const pugi::xml_node& part : element) {
    if (part.type() == pugi::node_pcdata || part.type() == pugi::node_cdata) text += part.value();
  }
  return text;
}

}  // namespace

Result<S3ListPage> ParseS3ListPage(std::string_view xml) {
  pugi::xml_document document;
  const Error incomplete{ErrorCode::kCorrupt, "the answer is not a complete ListBucketResult", ""};
  if (!Load(xml, &document)) return incomplete;
  const pugi::xml_node list = document.child("ListBucketResult");
  if (!list) return incomplete;
  S3ListPage page;
  for (const pugi::xml_node& contents : list.children("Contents")) {
    const auto bytes = ParseInt(Trim(TextOf(contents.child("Size"))));
    if (!bytes || *bytes < 0) return incomplete;
    page.objects.push_back({TextOf(contents.child("Key")), static_cast<uint64_t>(*bytes),
                            TextOf(contents.child("ETag")), TextOf(contents.child("LastModified"))});
  }
  if (Trim(TextOf(list.child("IsTruncated"))) != "true") return page;
  page.next_token = TextOf(list.child("NextContinuationToken"));
  if (page.next_token.empty()) {
    return Error{ErrorCode::kCorrupt, "the listing is truncated, but has no NextContinuationToken", ""};
  }
  return page;
}

std::optional<S3ErrorText> ParseS3Error(std::string_view xml) {
  pugi::xml_document document;
  (void)Load(xml, &document);  // a truncated one still says what is wrong
  const pugi::xml_node error = document.child("Error");
  const std::string code = TextOf(error.child("Code"));
  if (code.empty()) return std::nullopt;
  return S3ErrorText{code, TextOf(error.child("Message")), TextOf(error.child("Region"))};
}

}  // namespace fullbore::loader::remote
