#include "mcp/message.h"

#include <fmt/format.h>

#include <utility>

#include "base/json_extent.h"
#include "base/printable.h"

namespace fullbore::mcp {

namespace {

constexpr char kVersion[] = "2.0";

Json IdIn(const Json& object) {
  const auto id = object.find("id");
  return id != object.end() && IsId(*id) ? *id : Json();
}

std::variant<Message, Refusal> Malformed(const Json& object, const std::string& text) {
  return Refusal{IdIn(object), Fault::kInvalidRequest, text};
}

std::variant<Message, Refusal> AnswerIn(const Json& object) {
  Message message{IdIn(object), "", Json::object(), Json()};
  if (const auto result = object.find("result"); result != object.end()) message.result = *result;
  if (message.id.is_null()) return Malformed(object, "an answer without the id of a request");
  return message;
}

std::variant<Message, Refusal> MessageIn(const Json& object) {
  if (!object.is_object()) return Malformed(Json::object(), "a message is a JSON object");
  if (object.value("jsonrpc", Json()) != kVersion) return Malformed(object, "\"jsonrpc\" is not \"2.0\"");
  const bool has_method = object.contains("method");
  if (!has_method && (object.contains("result") || object.contains("error"))) return AnswerIn(object);
  if (!has_method || !object["method"].is_string()) return Malformed(object, "\"method\" is not a text");
  if (object.contains("id") && !IsId(object["id"]))
    return Malformed(object, "\"id\" is neither a text nor a whole number");
  Message message{IdIn(object), object["method"].get<std::string>(), Json::object(), Json()};
  if (const auto params = object.find("params"); params != object.end()) message.params = *params;
  if (!message.params.is_object()) return Malformed(object, "\"params\" is not an object");
  return message;
}

}  // namespace

bool IsId(const Json& id) { return id.is_string() || id.is_number_integer(); }

std::variant<Message, Refusal> ParseMessage(std::string_view line) {
  const JsonExtent extent = ExtentOfJson(line);
  if (extent.depth > kMaxDepth)
    return Refusal{Json(), Fault::kInvalidRequest, "the message is nested too deep"};
  if (extent.values > kMaxValues)
    return Refusal{Json(), Fault::kInvalidRequest,
                   fmt::format("a message has more than {} values", kMaxValues)};
  const Json value = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return Refusal{Json(), Fault::kParse, "the line is not JSON"};
  if (value.is_array())
    return Refusal{Json(), Fault::kInvalidRequest, "batches are not supported: one message a line"};
  return MessageIn(value);
}

Json Answer(const Json& id, Json result) {
  return {{"jsonrpc", kVersion}, {"id", id}, {"result", std::move(result)}};
}

Json Failure(const Refusal& refusal) {
  return {{"jsonrpc", kVersion},
          {"id", refusal.id},
          {"error", {{"code", static_cast<int>(refusal.fault)}, {"message", refusal.text}}}};
}

Json Notification(const std::string& method, Json params) {
  return {{"jsonrpc", kVersion}, {"method", method}, {"params", std::move(params)}};
}

Json Request(const std::string& id, const std::string& method, Json params) {
  return {{"jsonrpc", kVersion}, {"id", id}, {"method", method}, {"params", std::move(params)}};
}

std::string LineOf(const Json& message) {
  return PrintableJson(message.dump(-1, ' ', false, Json::error_handler_t::replace)) + "\n";
}

std::vector<Lines::Line> Lines::Add(std::string_view bytes) {
  std::vector<Line> whole;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (open_.too_long || open_.text.size() + part.size() > kMaxLineBytes)
      open_ = {"", true};
    else
      open_.text += part;
    if (end == std::string_view::npos) break;
    if (open_.too_long || !open_.text.empty()) whole.push_back(std::exchange(open_, {}));
    bytes.remove_prefix(end + 1);
  }
  return whole;
}

}  // namespace fullbore::mcp
