// fullbore agent: one process a node that says who holds its devices and what they do, for Prometheus.
#include <malloc.h>
#include <poll.h>
#include <sys/signalfd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "agent/node.h"
#include "base/clock.h"
#include "base/ending_signals.h"
#include "base/fd.h"
#include "base/print.h"
#include "cli/output.h"
#include "cli/server_token.h"
#include "cli/subcommand.h"
#include "record/openmetrics.h"
#include "serve/access.h"
#include "serve/server.h"

namespace fullbore::cli {

namespace {

constexpr char kDefaultAddress[] = "127.0.0.1:9400";
constexpr int64_t kTickNs = kNsPerSecond;
constexpr char kFrontPage[] =
    "<!doctype html><title>fullbore agent</title><a href=\"/metrics\">metrics</a> of this node, for Prometheus\n";

struct Flags {
  std::string listen = kDefaultAddress;
  std::string token_file;
  std::string root;  // for tests: a directory that holds proc/, sys/, dev/
};

void SayLine(const std::string& line) { Print(stderr, "fullbore agent: {}\n", line); }

serve::Response Answer(const serve::Request& request, const agent::Node& node, const serve::Access& access) {
  if (auto refusal = access.Refusal(request)) return std::move(*refusal);
  if (request.path.empty()) return serve::Response::Of("text/html; charset=utf-8", kFrontPage);
  const std::string& page = request.path[0];
  if (request.path.size() == 1 && page == "metrics")
    return serve::Response::Of(record::kOpenMetrics, node.Page(MonotonicNs()));
  if (request.path.size() == 1 && page == "healthz") return serve::Response::Of("text/plain", "ok\n");
  return serve::Response::Failure(404, "there is nothing here", "/metrics is what Prometheus reads");
}

// Until a signal comes.
void TickUntilTold(serve::Server& server, agent::Node& node, int signals) {
  int64_t next_ns = 0;
  while (true) {
    if (MonotonicNs() >= next_ns) {
      next_ns = MonotonicNs() + kTickNs;
      node.Tick(MonotonicNs());
    }
    pollfd ready[] = {{signals, POLLIN, 0}, {server.fd(), POLLIN, 0}};
    const int64_t wait_ns = std::max<int64_t>(0, next_ns - MonotonicNs());
    if (poll(ready, std::size(ready), static_cast<int>(wait_ns / kNsPerMs) + 1) < 0) continue;
    if (ready[0].revents != 0) return;
    server.Serve(MonotonicNs());
  }
}

int RunAgent(const Flags& flags) {
  // It shall stay small for weeks: what a look took for a moment goes back, and threads share one heap.
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
  auto token =
      TokenFor(flags.listen, flags.token_file, "keep to 127.0.0.1 and let an agent there forward it");
  if (!token) return Fail(token.error(), kExitUsage);
  const sigset_t ending = EndingSignals();
  sigprocmask(SIG_BLOCK, &ending, nullptr);
  const UniqueFd signals(signalfd(-1, &ending, SFD_CLOEXEC));
  std::unique_ptr<agent::Node> node;
  std::unique_ptr<serve::Access> access;
  auto server = serve::Server::Listen(
      flags.listen, [&](const serve::Request& request) { return Answer(request, *node, *access); });
  if (!server) return Fail(server.error(), StatusOf(server.error()));
  access = std::make_unique<serve::Access>((*server)->address(), std::move(*token));
  node = std::make_unique<agent::Node>(flags.root, FULLBORE_VERSION, SayLine);
  Print(stderr, "fullbore agent: http://{}/metrics\n", (*server)->address());
  if (const auto exposure = serve::ExposureOf(flags.token_file)) SayLine(*exposure);
  TickUntilTold(**server, *node, signals.get());
  return 0;
}

Handler Define(CLI::App& app, const Invocation&) {
  auto flags = std::make_shared<Flags>();
  app.add_option("--listen", flags->listen, "Address and port; another one than loopback needs a token")
      ->type_name("ADDRESS:PORT")
      ->default_str(kDefaultAddress);
  app.add_option("--token-file", flags->token_file,
                 "A file with the secret that Prometheus sends, on other addresses than loopback")
      ->type_name("FILE");
  app.add_option("--root", flags->root, "Read the machine from this directory instead of /")
      ->group("")
      ->type_name("DIR");
  return [flags] { return RunAgent(*flags); };
}

}  // namespace

const Subcommand kAgent = {
    "agent", "Say who holds this node's devices and what they do, for Prometheus",
    "fullbore agent\n  fullbore agent --listen 0.0.0.0:9400 --token-file /etc/fullbore/token", Define};

}  // namespace fullbore::cli
