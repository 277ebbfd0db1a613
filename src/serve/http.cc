#include "serve/http.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace fullbore::serve {

namespace {

constexpr size_t kMaxHeaders = 100;

bool IsTokenCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool IsToken(std::string_view text) { return !text.empty() && std::ranges::all_of(text, IsTokenCharacter); }

// Visible ASCII, blanks and tabs, and bytes of other alphabets.
bool IsFieldValue(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return c == '\t' || (c >= 0x20 && c != 0x7f); });
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Nothing if an escape is broken or stands for a zero byte.
std::optional<std::string> Decode(std::string_view text, bool plus_is_blank) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += plus_is_blank && text[i] == '+' ? ' ' : text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = HexDigit(text[i + 1]), low = HexDigit(text[i + 2]);
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

bool ReadTarget(std::string_view target, Request& request) {
  if (!target.starts_with('/')) return false;
  const size_t mark = target.find('?');
  const std::string_view path = target.substr(0, mark);
  for (const std::string_view part : Split(path.substr(1), '/')) {
    const auto decoded = Decode(part, false);
    // Nothing here is a path of the file system; a name with a slash or of dots only is refused all the same.
    if (!decoded || *decoded == "." || *decoded == ".." || decoded->find('/') != std::string::npos)
      return false;
    request.path.push_back(*decoded);
  }
  if (request.path == std::vector<std::string>{""}) request.path.clear();
  if (mark == std::string_view::npos) return true;
  for (const std::string_view part : Split(target.substr(mark + 1), '&')) {
    const size_t equals = part.find('=');
    const auto name = Decode(part.substr(0, equals), true);
    const auto value =
        Decode(equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1), true);
    if (!name || !value) return false;
    if (!name->empty()) request.query[*name] = *value;
  }
  return true;
}

Parsed Refuse(int status, std::string_view why) {
  return {Parsed::State::kRefused, {}, Response::Failure(status, why)};
}

bool ReadHeaders(const std::vector<std::string_view>& lines, Request& request) {
  if (lines.size() > kMaxHeaders) return false;
  for (size_t i = 1; i < lines.size(); ++i) {
    const size_t colon = lines[i].find(':');
    if (colon == std::string_view::npos || !IsToken(lines[i].substr(0, colon))) return false;
    const std::string_view value = Trim(lines[i].substr(colon + 1));
    if (!IsFieldValue(value)) return false;
    const auto [known, is_new] =
        request.headers.try_emplace(Lower(lines[i].substr(0, colon)), std::string(value));
    if (is_new) continue;
    if (known->first == "host" || known->first == "content-length") return false;
    known->second += ", " + std::string(value);
  }
  return true;
}

constexpr std::string_view kEnd = "\r\n\r\n";

std::string_view ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 303:
      return "See Other";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 421:
      return "Misdirected Request";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 507:
      return "Insufficient Storage";
    default:
      return "Error";
  }
}

}  // namespace

std::string Request::Header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

std::string Request::Query(const std::string& name) const {
  const auto found = query.find(name);
  return found == query.end() ? "" : found->second;
}

std::string Request::Cookie(std::string_view name) const {
  const std::string cookies = Header("cookie");
  for (const std::string_view part : Split(cookies, ';')) {
    const std::string_view pair = Trim(part);
    const size_t equals = pair.find('=');
    if (equals != std::string_view::npos && pair.substr(0, equals) == name)
      return std::string(pair.substr(equals + 1));
  }
  return "";
}

Response Response::Of(std::string type, std::string body, int status) {
  Response response;
  response.status = status;
  response.type = std::move(type);
  response.body = std::make_shared<const std::string>(std::move(body));
  return response;
}

Response Response::Later() {
  Response response;
  response.later = true;
  return response;
}

Response Response::Failure(int status, std::string_view text, std::string_view hint) {
  nlohmann::ordered_json json = {{"error", text}};
  if (!hint.empty()) json["hint"] = hint;
  return Of("application/json", json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n",
            status);
}

Parsed Parse(std::string_view bytes) {
  const size_t end = bytes.find(kEnd);
  if (end == std::string_view::npos || end > kMaxHeadBytes) {
    if (bytes.size() > kMaxHeadBytes) return Refuse(431, "the head of the request is too long");
    return {};
  }
  std::vector<std::string_view> lines;
  for (std::string_view line : Split(bytes.substr(0, end), '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
  }
  Parsed parsed;
  Request& request = parsed.request;
  const std::vector<std::string_view> words = Split(lines[0], ' ');
  if (words.size() != 3 || !IsToken(words[0]) || (words[2] != "HTTP/1.1" && words[2] != "HTTP/1.0"))
    return Refuse(400, "the first line is not a request of HTTP/1.1");
  request.method = words[0];
  if (!ReadTarget(words[1], request)) return Refuse(400, "the path is not one");
  if (!ReadHeaders(lines, request)) return Refuse(400, "a header is malformed");
  if (!request.Header("transfer-encoding").empty()) return Refuse(501, "bodies need a Content-Length");
  const auto length = request.headers.find("content-length");
  const auto body_bytes =
      length == request.headers.end() ? std::optional<int64_t>(0) : ParseInt(length->second);
  if (!body_bytes || *body_bytes < 0) return Refuse(400, "the Content-Length is not a number");
  if (*body_bytes > static_cast<int64_t>(kMaxBodyBytes)) return Refuse(413, "the body is too long");
  const std::string_view body = bytes.substr(end + kEnd.size());
  if (body.size() < static_cast<size_t>(*body_bytes)) return {};
  request.body = body.substr(0, static_cast<size_t>(*body_bytes));
  parsed.state = Parsed::State::kComplete;
  return parsed;
}

std::string HeadOf(const Response& response) {
  std::string head = fmt::format(
      "HTTP/1.1 {} {}\r\n"
      "Content-Type: {}\r\n"
      "Connection: close\r\n"
      "Cache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\n"
      "Referrer-Policy: no-referrer\r\n"
      "Cross-Origin-Resource-Policy: same-origin\r\n"
      "Cross-Origin-Opener-Policy: same-origin\r\n"
      "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
      "img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'\r\n",
      response.status, ReasonOf(response.status), response.type);
  if (response.stream.empty())
    head += fmt::format("Content-Length: {}\r\n", response.body ? response.body->size() : 0);
  for (const auto& [name, value] : response.headers) head += name + ": " + value + "\r\n";
  return head + "\r\n";
}

}  // namespace fullbore::serve
