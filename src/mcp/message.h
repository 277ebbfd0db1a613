// Messages of JSON-RPC 2.0, one a line, as the Model Context Protocol sends them over standard input and output. What a
// client writes is judged strictly: anything that is not exactly a message gets an error, and never ends the server.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace fullbore::mcp {

using Json = nlohmann::ordered_json;

// Far above what a call needs; a client that sends more is broken.
inline constexpr size_t kMaxLineBytes = 1 << 20;
inline constexpr int kMaxDepth = 32;
inline constexpr size_t kMaxValues = 2000;  // a member is looked for among all before it

// As JSON-RPC numbers them, and the protocol for a resource.
enum class Fault : int {
  kParse = -32700,
  kInvalidRequest = -32600,
  kNoMethod = -32601,
  kInvalidParams = -32602,
  kInternal = -32603,
  kNoResource = -32002,
};

struct Message {
  Json id;             // null: a notification, which gets no answer
  std::string method;  // empty: the answer to a request of ours
  Json params = Json::object();
  Json result;  // of an answer; null where it is an error
};

struct Refusal {
  Json id;  // null where it cannot be told
  Fault fault;
  std::string text;
};

// Whether it may name a request, or what is told of one.
bool IsId(const Json& id);

std::variant<Message, Refusal> ParseMessage(std::string_view line);

Json Answer(const Json& id, Json result);
Json Failure(const Refusal& refusal);
Json Notification(const std::string& method, Json params);
Json Request(const std::string& id, const std::string& method, Json params);

// As one line, whatever the texts in it hold; with its end.
std::string LineOf(const Json& message);

// Cuts what arrives into lines. No more than a line is ever kept.
class Lines {
 public:
  struct Line {
    std::string text;
    bool too_long = false;  // then without its text
  };
  std::vector<Line> Add(std::string_view bytes);

 private:
  Line open_;  // whose end has not arrived
};

}  // namespace fullbore::mcp
