#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/ending_signals.h"
#include "base/print.h"
#include "cli/alert_rules.h"
#include "cli/output.h"
#include "cli/server_token.h"
#include "cli/subcommand.h"
#include "record/run_reader.h"
#include "serve/access.h"
#include "serve/api.h"
#include "serve/server.h"
#include "watch/notify/guard.h"
#include "watch/runs_folder.h"

namespace fullbore::cli {

namespace {

struct Flags {
  std::vector<std::string> directories = {kDefaultRunsDirectory};
  std::string listen = "127.0.0.1:7788";
  std::string token_file;
  std::string rules;
  bool allow_delete = false;
};

constexpr int64_t kTickNs = kNsPerSecond, kAskAgainNs = 20 * kNsPerMs;
constexpr int64_t kWaitsNs = 50 * kNsPerMs;  // for a judgement, while others wait

// Null without rules.
Result<std::shared_ptr<watch::Guard>> GuardOf(const Flags& flags) {
  if (flags.rules.empty()) return std::shared_ptr<watch::Guard>();
  auto rules = RulesNamed(flags.rules);
  if (!rules) return rules.error();
  const auto say = [](const std::string& line) { Print(stderr, "fullbore serve: {}\n", line); };
  return std::make_shared<watch::Guard>(std::move(*rules), say);
}

const char* RightsIn(const Flags& flags, bool may_write) {
  if (!may_write) return "read-only";
  return flags.allow_delete ? "runs can be deleted, and notes and tags changed, with the token"
                            : "notes and tags can be changed with the token";
}

void Greet(const serve::Server& server, const Flags& flags, bool may_write) {
  Print(stderr, "fullbore serve: http://{}/  {}; Ctrl-C ends it\n", server.address(),
        RightsIn(flags, may_write));
  const auto exposure = may_write ? serve::ExposureOf(flags.token_file) : std::nullopt;
  if (exposure) Print(stderr, "fullbore serve: {}\n", *exposure);
  if (serve::IsLoopback(server.address())) return;
  Print(stderr,
        "fullbore serve: whoever reaches {} and has the token sees command lines, paths, source lines and "
        "facts about this machine; the connection is not encrypted\n",
        server.address());
  for (const std::string& directory : flags.directories) Print(stderr, "  of the runs in {}\n", directory);
}

// Until a signal ends it. One thread does everything but judging and posting, so that there is nothing to lock.
void ServeUntilTold(serve::Server& server, watch::RunsFolder& folder, watch::Guard* guard, int signals) {
  int64_t next_tick_ns = 0;
  bool noticed = false;  // a change in the directories, which the next tick reads
  while (true) {
    const int64_t now_ns = MonotonicNs();
    if (now_ns >= next_tick_ns) {
      noticed = false;
      folder.Tick(now_ns, WallNs());
      if (guard) guard->Deliver(now_ns);
      next_tick_ns = now_ns + kTickNs;
    }
    // What was noticed stays readable until then: poll would return at once, again and again.
    pollfd ready[] = {
        {signals, POLLIN, 0}, {server.fd(), POLLIN, 0}, {noticed ? -1 : folder.fd(), POLLIN, 0}};
    int64_t wait_ns = std::max<int64_t>(0, next_tick_ns - MonotonicNs());
    if (server.waits()) wait_ns = std::min(wait_ns, kAskAgainNs);
    if (poll(ready, std::size(ready), static_cast<int>(wait_ns / kNsPerMs) + 1) < 0) continue;
    if (ready[0].revents != 0) return;
    // Several files of a run change at once: one look takes them all.
    if (ready[2].revents != 0) {
      noticed = true;
      next_tick_ns = std::min(next_tick_ns, now_ns + kTickNs / 10);
    }
    server.Serve(MonotonicNs());
  }
}

int Serve(const Flags& flags) {
  // What reading a run took for a moment goes back to the system at once.
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
  auto token =
      TokenFor(flags.listen, flags.token_file, "keep to 127.0.0.1 and use ssh -L 7788:127.0.0.1:7788 HOST");
  if (!token) return Fail(token.error(), kExitUsage);
  const bool may_write = token->has_value();
  if (flags.allow_delete && !may_write)
    return Fail({ErrorCode::kInvalidArgument, "--allow-delete without --token-file would delete for nobody",
                 "--token-file FILE: head -c 24 /dev/urandom | base64 > FILE; chmod 600 FILE"},
                kExitUsage);
  const auto guard = GuardOf(flags);
  if (!guard) return Fail(guard.error(), kExitUsage);
  watch::Guard* const watches = guard->get();
  const UniqueFd signals = HeldEndingSignals();
  watch::RunsFolder folder(flags.directories, {.waits_ns = kWaitsNs});
  std::unique_ptr<serve::Api> api;
  auto server = serve::Server::Listen(flags.listen,
                                      [&](const serve::Request& request) { return api->Answer(request); });
  if (!server) return Fail(server.error(), StatusOf(server.error()));
  const auto explain = [](const std::string& path) -> Result<report::Explained> {
    auto recording = record::ReadRun(path);
    if (!recording) return recording.error();
    return ExplainAll(std::move(*recording));
  };
  std::function<nlohmann::ordered_json()> alerts;
  if (watches) alerts = [watches] { return watches->State(); };
  api = std::make_unique<serve::Api>(serve::Parts{folder, explain, alerts, kWaitsNs, flags.allow_delete},
                                     serve::Access((*server)->address(), std::move(*token)));
  folder.on_look = [&](const std::string& name, const watch::LiveRun& run, bool over) {
    const std::string stream = serve::Api::StreamOf(name);
    if (watches) watches->OnLook(name, run, over);
    if ((*server)->HasListeners(stream)) (*server)->Publish(stream, "live", serve::Api::LiveEvent(run, over));
  };
  if (watches) folder.is_owed = [&](const std::string& run_file) { return watches->IsOwed(run_file); };
  Greet(**server, flags, may_write);
  ServeUntilTold(**server, folder, watches, signals.get());
  return 0;
}

Handler Define(CLI::App& app, const Invocation&) {
  auto flags = std::make_shared<Flags>();
  app.add_option("--dir", flags->directories, "Where runs are kept; may be given several times")
      ->type_name("DIR")
      ->allow_extra_args(false)
      ->default_str(kDefaultRunsDirectory);
  app.add_option("--listen", flags->listen, "Address and port; another one than loopback needs a token")
      ->type_name("ADDRESS:PORT")
      ->default_str("127.0.0.1:7788");
  app.add_option(
         "--token-file", flags->token_file,
         "A file with the secret that lets people change notes and tags and, on other addresses than\n"
         "loopback, read")
      ->type_name("FILE");
  app.add_flag("--allow-delete", flags->allow_delete, "Let those who have the token delete runs, too");
  app.add_option("--rules", flags->rules, kRulesHelp)->type_name("FILE");
  return [flags] { return Serve(*flags); };
}

}  // namespace

const Subcommand kServe = {"serve", "Show all runs, live ones too, on a page; metrics for Prometheus",
                           "fullbore serve\n  fullbore serve --dir /shared/runs --listen 0.0.0.0:7788 "
                           "--token-file token",
                           Define};

}  // namespace fullbore::cli
