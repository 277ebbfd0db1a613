#include "loader/core/source/remote/http_client.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "base/authorities.h"
#include "base/text.h"

namespace fullbore::loader::remote {
namespace {

// Longer than a slow but healthy store takes for its first byte (S3: 100-200 ms, about 1 s in the tail).
constexpr int64_t kStallMessageNs = 5 * kNsPerSecond;
constexpr size_t kMaxIdleConnections = 64;  // twice the largest number of read threads of a loader
constexpr size_t kMaxErrorBytes = 64 * 1024;
constexpr long kReceiveBytes = 512 * 1024;  // libcurl's default, 16 KB, costs a tenth of the rate at 1 GB/s
constexpr long kMaxRedirects = 10;

void InitialiseCurlOnce() {
  static const CURLcode once = curl_global_init(CURL_GLOBAL_DEFAULT);
  FB_CHECK(once == CURLE_OK);
}

// Errors of the connection are worth a retry; errors of the request itself are not.
bool IsBroken(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_BAD_CONTENT_ENCODING:
      return true;
    default:
      return false;
  }
}

// A child process of the training must not inherit connections.
int CloseOnExec(void*, curl_socket_t socket, curlsocktype) {
  fcntl(socket, F_SETFD, FD_CLOEXEC);
  return CURL_SOCKOPT_OK;
}

struct HeaderList {
  curl_slist* list = nullptr;
  HeaderList() = default;
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  ~HeaderList() { curl_slist_free_all(list); }
  void Append(const std::string& line) {
    curl_slist* longer = curl_slist_append(list, line.c_str());
    FB_CHECK(longer != nullptr);
    list = longer;
  }
};

}  // namespace

// A libcurl handle with its open connections, and the transfer that uses it. Uses the multi interface,
// because only that can be woken from another thread.
class HttpClient::Connection {
 public:
  Connection() : multi_(curl_multi_init()), easy_(curl_easy_init()) {
    FB_CHECK(multi_ != nullptr && easy_ != nullptr);
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, 4L);  // the server and a redirect or two
  }
  ~Connection() {
    if (abandoned_) return;
    curl_easy_cleanup(easy_);
    curl_multi_cleanup(multi_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // After a fork: closing would end the parent's connection. The memory is leaked.
  void Abandon() { abandoned_ = true; }
  void Wake() { curl_multi_wakeup(multi_); }

  HttpOutcome Perform(const HttpRequest& request, const BodySink& sink, const Cancellation::Token& token,
                      int64_t timeout_ns, const std::string& authorities_path, MessageLog& log) {
    outcome_ = {};
    sink_ = &sink;
    HeaderList headers;
    for (const auto& line : request.headers) headers.Append(line);
    SetOptions(request, headers.list, timeout_ns, authorities_path);
    last_byte_ns_ = MonotonicNs();
    error_since_ns_ = 0;
    stopped_ = false;
    FB_CHECK(curl_multi_add_handle(multi_, easy_) == CURLM_OK);
    Drive(request, token, timeout_ns, log);
    curl_multi_remove_handle(multi_, easy_);
    curl_easy_reset(easy_);  // keeps the connections, drops pointers into this frame
    return std::move(outcome_);
  }

 private:
  void SetOptions(const HttpRequest& request, curl_slist* headers, int64_t timeout_ns,
                  const std::string& authorities_path) {
    curl_easy_setopt(easy_, CURLOPT_URL, request.url.c_str());
    curl_easy_setopt(easy_, CURLOPT_PATH_AS_IS, 1L);  // "a/../b" is a legal key
    curl_easy_setopt(easy_, CURLOPT_NOBODY, request.head ? 1L : 0L);
    curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy_, CURLOPT_FOLLOWLOCATION, request.follow_redirects ? 1L : 0L);
    curl_easy_setopt(easy_, CURLOPT_MAXREDIRS, kMaxRedirects);
    curl_easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
    // https promises that nobody on the way reads or changes the data. Credentials in the URL go to its host
    // only, which libcurl ensures by default.
    const bool secure = request.url.size() > 5 && (request.url[4] == 's' || request.url[4] == 'S');
    curl_easy_setopt(easy_, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
    // Parallel ranges are faster over separate connections than as streams of one.
    curl_easy_setopt(easy_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);    // signals are the business of the host process
    curl_easy_setopt(easy_, CURLOPT_QUICK_EXIT, 1L);  // does not wait for a cancelled name lookup
    curl_easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(timeout_ns / kNsPerMs));
    curl_easy_setopt(easy_, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy_, CURLOPT_BUFFERSIZE, kReceiveBytes);
    curl_easy_setopt(easy_, CURLOPT_USERAGENT, "fullbore");
    if (!authorities_path.empty()) curl_easy_setopt(easy_, CURLOPT_CAINFO, authorities_path.c_str());
    curl_easy_setopt(easy_, CURLOPT_SOCKOPTFUNCTION, CloseOnExec);
    curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, error_text_);
    curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, OnHeader);
    curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
    curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, OnBody);
    curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
    error_text_[0] = '\0';
  }

  void Drive(const HttpRequest& request, const Cancellation::Token& token, int64_t timeout_ns,
             MessageLog& log) {
    for (;;) {
      if (token.cancelled()) {
        outcome_.end = HttpOutcome::End::kCancelled;
        return;
      }
      int running = 0;
      if (const CURLMcode failed = curl_multi_perform(multi_, &running); failed != CURLM_OK) {
        outcome_.end = HttpOutcome::End::kBroken;
        outcome_.problem = curl_multi_strerror(failed);
        return;
      }
      if (running == 0) return Conclude();
      const int64_t now_ns = MonotonicNs(), silent_ns = now_ns - last_byte_ns_;
      if (error_since_ns_ != 0 && now_ns - error_since_ns_ >= timeout_ns) {
        outcome_.end = HttpOutcome::End::kStopped;  // what has arrived so far must do
        return;
      }
      if (silent_ns >= timeout_ns) {
        outcome_.end = HttpOutcome::End::kSilent;
        outcome_.problem = "no data for " + FormatDuration(timeout_ns);
        return;
      }
      if (silent_ns >= kStallMessageNs && !outcome_.stalled) {
        outcome_.stalled = true;
        log.Trouble(request.name + ": the server has been silent for " + FormatDuration(silent_ns) +
                    "; the request is given up and sent again after " + FormatDuration(timeout_ns));
      }
      int64_t next_ns = silent_ns < kStallMessageNs ? std::min(kStallMessageNs, timeout_ns) : timeout_ns;
      if (error_since_ns_ != 0)
        next_ns = std::min(next_ns, silent_ns + error_since_ns_ + timeout_ns - now_ns);
      // libcurl's own timers may be earlier; it takes the earliest.
      curl_multi_poll(multi_, nullptr, 0, static_cast<int>((next_ns - silent_ns) / kNsPerMs + 1), nullptr);
    }
  }

  void Conclude() {
    int left = 0;
    const CURLMsg* message = curl_multi_info_read(multi_, &left);
    FB_CHECK(message != nullptr && message->msg == CURLMSG_DONE);
    const CURLcode code = message->data.result;
    if (code == CURLE_OK) {
      outcome_.end = HttpOutcome::End::kComplete;
    } else if (stopped_) {
      outcome_.end = HttpOutcome::End::kStopped;
    } else {
      outcome_.end = IsBroken(code) ? HttpOutcome::End::kBroken : HttpOutcome::End::kImpossible;
      outcome_.problem = error_text_[0] != '\0' ? error_text_ : curl_easy_strerror(code);
      if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE) {
        outcome_.hint = "name a file with the certificate of its authority in SSL_CERT_FILE or AWS_CA_BUNDLE";
      }
    }
  }

  static size_t OnHeader(char* data, size_t size, size_t count, void* self) {
    auto& me = *static_cast<Connection*>(self);
    me.last_byte_ns_ = MonotonicNs();
    me.stopped_ = false;
    me.outcome_.headers.Take({data, size * count}, std::time(nullptr));
    return size * count;
  }

  static size_t OnBody(char* data, size_t size, size_t count, void* self) {
    auto& me = *static_cast<Connection*>(self);
    me.last_byte_ns_ = MonotonicNs();
    const size_t bytes = size * count;
    const int status = me.outcome_.headers.status;
    if (status != 200 && status != 206) {
      auto& body = me.outcome_.error_body;
      body.append(data, std::min(bytes, kMaxErrorBytes - body.size()));
      if (me.error_since_ns_ == 0) me.error_since_ns_ = me.last_byte_ns_;
      me.stopped_ = body.size() == kMaxErrorBytes;  // some never end
      return me.stopped_ ? 0 : bytes;
    }
    me.stopped_ = !(*me.sink_)(me.outcome_.headers, {reinterpret_cast<const uint8_t*>(data), bytes});
    return me.stopped_ ? 0 : bytes;  // any other number ends the transfer
  }

  CURLM* multi_;
  CURL* easy_;
  bool abandoned_ = false;
  char error_text_[CURL_ERROR_SIZE] = {};

  // Of the current transfer.
  HttpOutcome outcome_;
  const BodySink* sink_ = nullptr;
  int64_t last_byte_ns_ = 0;
  int64_t error_since_ns_ = 0;  // when an error body began; 0: it has not
  bool stopped_ = false;
};

HttpClient::HttpClient(double timeout_s, MessageLog& log)
    : timeout_s_(timeout_s),
      authorities_path_(AuthoritiesPath({"AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"})),
      log_(log),
      owner_pid_(getpid()) {
  InitialiseCurlOnce();
}

HttpClient::~HttpClient() {
  if (getpid() == owner_pid_) return;
  for (auto& connection : idle_) connection->Abandon();
}

HttpOutcome HttpClient::Perform(const HttpRequest& request, const BodySink& sink,
                                const Cancellation::Token& token) {
  auto connection = Lease();
  const auto timeout_ns = static_cast<int64_t>(timeout_s_ * static_cast<double>(kNsPerSecond));
  auto outcome = connection->Perform(request, sink, token, timeout_ns, authorities_path_, log_);
  Return(std::move(connection));
  return outcome;
}

void HttpClient::Wake() {
  std::lock_guard lock(mutex_);
  for (Connection* connection : busy_) connection->Wake();
}

std::unique_ptr<HttpClient::Connection> HttpClient::Lease() {
  std::lock_guard lock(mutex_);
  if (const int pid = getpid(); pid != owner_pid_) {
    for (auto& connection : idle_) connection->Abandon();
    idle_.clear();
    busy_.clear();
    owner_pid_ = pid;
  }
  std::unique_ptr<Connection> connection;
  if (idle_.empty()) {
    connection = std::make_unique<Connection>();
  } else {
    connection =
        std::move(idle_.back());  // the most recently used: its connection is the least likely to be closed
    idle_.pop_back();
  }
  busy_.push_back(connection.get());
  return connection;
}

void HttpClient::Return(std::unique_ptr<Connection> connection) {
  std::lock_guard lock(mutex_);
  std::erase(busy_, connection.get());
  if (idle_.size() < kMaxIdleConnections) idle_.push_back(std::move(connection));
}

}  // namespace fullbore::loader::remote
