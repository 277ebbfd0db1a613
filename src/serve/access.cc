#include "serve/access.h"

#include <arpa/inet.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

#include "base/small_file.h"
#include "base/text.h"

namespace fullbore::serve {

namespace {

// Names of hosts are the same in capitals: browsers ask in small letters, whatever the machine calls itself.
std::string Small(std::string name) {
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

// "localhost:7788" without the port, "[::1]" without the brackets; in small letters.
std::string NameIn(const std::string& host) {
  if (host.starts_with('[')) return Small(host.substr(1, host.find(']') - 1));
  return Small(host.substr(0, host.rfind(':')));
}

bool IsAddress(const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return inet_pton(AF_INET, name.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, name.c_str(), bytes.data()) == 1;
}

bool IsLoopbackName(const std::string& name) {
  in_addr address{};
  if (inet_pton(AF_INET, name.c_str(), &address) == 1) return (ntohl(address.s_addr) >> 24) == 127;
  return name == "localhost" || name == "::1";
}

bool Reads(const Request& request) { return request.method == "GET" || request.method == "HEAD"; }

bool Is(const Request& request, const char* first) {
  return request.path.size() == 1 && request.path[0] == first;
}

// What somebody without the token needs to give it, and what load balancers ask.
bool IsOpen(const Request& request) {
  return Is(request, "healthz") || Is(request, "login") ||
         (request.path.size() == 2 && request.path[0] == "assets");
}

}  // namespace

Result<std::string> ReadToken(const std::string& path) {
  const auto text = ReadSmallFile(path);
  if (!text) return text.error();
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return ErrnoError("cannot open '" + path + "'", errno);
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 || (status.st_uid != geteuid() && status.st_uid != 0)) {
    return Error{ErrorCode::kPermission,
                 "the token in '" + path + "' is not used: others than you may change that file",
                 "chmod 600 " + path + " (and it must belong to you), then write a new token into it"};
  }
  const std::string_view token = Trim(std::string_view(*text).substr(0, text->find('\n')));
  if (token.size() < kShortestToken) {
    return Error{
        ErrorCode::kInvalidArgument,
        "the token in '" + path + "' is shorter than " + std::to_string(kShortestToken) + " characters",
        "head -c 24 /dev/urandom | base64 > " + path};
  }
  return std::string(token);
}

std::optional<std::string> ExposureOf(const std::string& token_file) {
  struct stat status {};
  if (stat(token_file.c_str(), &status) != 0 || (status.st_mode & (S_IRGRP | S_IROTH)) == 0)
    return std::nullopt;
  return "the token in '" + token_file +
         "' is no secret: others on this machine may read that file (chmod 600 " + token_file + ")";
}

bool IsLoopback(const std::string& address) { return IsLoopbackName(NameIn(address)); }

Access::Access(const std::string& address, std::optional<std::string> token)
    : loopback_(IsLoopback(address)), token_(std::move(token)) {
  names_ = {"localhost", NameIn(address)};
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (!loopback_ && gethostname(name.data(), name.size() - 1) == 0) names_.insert(Small(name.data()));
}

// By address there is nothing to rebind, except that a loopback server is only ever reached by loopback addresses.
bool Access::IsOurs(const std::string& host) const {
  const std::string name = NameIn(host.find(':') == std::string::npos ? host + ":" : host);
  if (names_.contains(name)) return true;
  return loopback_ ? IsLoopbackName(name) : IsAddress(name);
}

bool Access::IsToken(const std::string& text) const {
  if (!token_) return false;
  size_t differs = text.size() ^ token_->size();
  for (size_t i = 0; i < token_->size(); ++i) {
    const char given = text.empty() ? '\0' : text[i % text.size()];
    differs |= static_cast<size_t>(static_cast<unsigned char>(given ^ (*token_)[i]));
  }
  return differs == 0;
}

bool Access::HasToken(const Request& request) const {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string bearer = request.Header("authorization");
  if (bearer.starts_with(kBearer)) return IsToken(bearer.substr(kBearer.size()));
  return IsToken(request.Cookie(kTokenCookie));
}

std::optional<Response> Access::Refusal(const Request& request) const {
  const std::string host = request.Header("host");
  if (!IsOurs(host))
    return Response::Failure(421, "this server is not called '" + host + "'", "use its address instead");
  if (!Reads(request) && request.method != "PUT" && request.method != "POST")
    return Response::Failure(405, "only GET, HEAD, PUT and POST");
  const std::string origin = request.Header("origin");
  if (!origin.empty() && origin != "http://" + host && origin != "https://" + host)
    return Response::Failure(403, "pages of other sites may not ask");
  if (IsOpen(request) || HasToken(request) || (loopback_ && Reads(request))) return std::nullopt;
  if (!token_)
    return Response::Failure(403, "this server is read-only",
                             "start it with --token-file FILE to change something");
  Response refusal = Response::Failure(401, "the token is missing or wrong",
                                       "Authorization: Bearer TOKEN, or the page /login");
  refusal.headers.emplace_back("WWW-Authenticate", "Bearer");
  return refusal;
}

}  // namespace fullbore::serve
