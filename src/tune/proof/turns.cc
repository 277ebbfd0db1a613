#include "tune/proof/turns.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "tune/proof/room.h"
#include "tune/proof/slices.h"

namespace fullbore::tune {

namespace {

constexpr int kLookMs = 100;
constexpr double kEndSeconds = 30;  // for ending what they started, before they are killed
constexpr size_t kMostBytes = 1 << 16;
constexpr size_t kLeastSlices = 10;
// A pair that is out of its time has so many at least: to tell something, and to show whether something goes on.
constexpr size_t kFewest = 2, kFewestWithOthers = 5;
constexpr double kMostSecondsOfPair = 30;
constexpr int64_t kLeastWarmSteps = 5;
constexpr double kNormal95 = 1.96;
// A thread that waits for data and is blocked for more of the time than this may be fed by others.
constexpr double kWaits = 0.05;

// In the process of the trial. Whatever happens, it says something: silence is an end, too.
[[noreturn]] void BeTheTrial(Contender contender, TurnLine& line) {
  try {
    contender.options.turns = &line;
    const auto measured = Measure(contender.options, contender.settings);
    nlohmann::ordered_json end = {{"what", "end"}};
    if (measured) {
      end["trial"] = ToJson(measured->trial);
      end["interrupted_by"] = OrNull(measured->interrupted_by);
    } else {
      end["error"] = measured.error().text;
    }
    line.Say(end);
  } catch (const std::exception& error) {
    line.Say({{"what", "end"}, {"error", error.what()}});
  }
  _exit(0);
}

double Seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

// One of the two, in a process of its own.
struct Player {
  const char* name = "";
  pid_t pid = -1;
  UniqueFd line;
  bool uses_device = false;
  Warm warm;
  std::optional<Trial> trial;  // once it has ended
  std::vector<Slice> slices;
};

class Game {
 public:
  Game(const Contender& baseline, const Contender& candidate)
      : contenders_{baseline, candidate}, on_pipe_(signal(SIGPIPE, SIG_IGN)) {
    players_[0].name = "baseline";
    players_[1].name = "candidate";
  }
  ~Game() { (void)signal(SIGPIPE, on_pipe_); }
  Game(const Game&) = delete;
  Game& operator=(const Game&) = delete;

  Turns Play(const std::optional<Acquaintance>& earlier);

 private:
  Result<void> Start();
  Result<void> StartAgain(const Acquaintance& earlier);
  Result<void> Fork(Player& player, const Contender& contender);
  Result<void> WarmUp(Player& player);
  // The next word of this one, which has to be that.
  Result<nlohmann::json> Hear(Player& player, const std::string& what);
  std::optional<nlohmann::json> Receive(Player& player, int wait_ms);
  void NoteEnd(Player& player, const nlohmann::json& end);
  Result<void> RunSlice(Player& player);
  Result<void> RunSlices();
  Result<void> CheckSlices() const;
  const MeasureOptions& options() const { return contenders_[0].options; }  // of both: precision, time
  // Something, while one of them stands, in which it would get ahead.
  bool MayGoOn() const;
  double HalfWidth() const;  // of the ratio's interval
  bool IsKnown() const;
  // Than this pair, the first of whose slices began at that time. (The first pair takes longer to begin than others will,
  // and goes on for a little longer than is best.)
  bool IsWorthAnother(int64_t first_ns) const;
  int64_t EndOfShareNs() const;  // of the time that is left
  size_t fewest() const { return may_go_on_ ? kFewestWithOthers : kFewest; }
  bool IsCutShort();
  void End();
  std::optional<Made> FailedAlone() const;

  std::array<Contender, 2> contenders_;
  std::array<Player, 2> players_;
  void (*on_pipe_)(int);  // ignored meanwhile: whoever reads what we say may go
  bool may_go_on_ = false;
  int64_t begin_ns_ = MonotonicNs();
  size_t pairs_before_ = 0;
  std::optional<int> interrupted_by_;
  std::mt19937 coin_{std::random_device{}()};
};

Result<void> Game::Fork(Player& player, const Contender& contender) {
  auto line = TurnLine::Make();
  if (!line) return line.error();
  (void)std::fflush(nullptr);  // or the trial's process would print it again
  player.pid = fork();
  if (player.pid < 0) return ErrnoError("no process for a trial", errno);
  if (player.pid == 0) {
    (void)signal(SIGPIPE, on_pipe_);
    // Each end has one owner, whose death is seen at the other.
    line->second.reset();
    for (Player& other : players_) other.line.reset();
    BeTheTrial(contender, line->first);
  }
  player.line = std::move(line->second);
  return {};
}

Result<void> Game::WarmUp(Player& player) {
  const auto ready = Hear(player, "ready");
  if (!ready) return ready.error();
  player.uses_device = ready->value("uses_device", false);
  player.warm = {ready->value("most_steps", 0.0), ready->value("waited", 0.0), ready->value("blocked", 1.0),
                 ready->value("warmup_steps", int64_t{0})};
  return {};
}

Result<void> Game::Start() {
  const MemoryNow before = LookAtMemory();
  if (auto started = Fork(players_[0], contenders_[0]); !started) return started;
  if (auto warm = WarmUp(players_[0]); !warm) return warm;
  const MemoryNow beside = LookAtMemory();
  players_[0].uses_device = players_[0].uses_device || AnyDeviceWasTaken(before, beside);
  if (const auto why = NoRoomForBoth(before, beside, players_[0].uses_device, contenders_[0].memory,
                                     contenders_[1].memory))
    return Error{ErrorCode::kUnavailable, *why, ""};
  if (auto started = Fork(players_[1], contenders_[1]); !started) return started;
  if (auto warm = WarmUp(players_[1]); !warm) return warm;
  may_go_on_ = MayGoOn();
  return {};
}

// Beside each other they warm up more slowly than alone: what they are like was seen before.
Result<void> Game::StartAgain(const Acquaintance& earlier) {
  for (size_t i = 0; i < players_.size(); ++i) {
    contenders_[i].options.warm_after = std::max(kLeastWarmSteps, earlier.warm[i].steps);
    if (auto started = Fork(players_[i], contenders_[i]); !started) return started;
  }
  for (Player& player : players_) {
    if (auto warm = WarmUp(player); !warm) return warm;
  }
  for (size_t i = 0; i < players_.size(); ++i) players_[i].warm = earlier.warm[i];
  may_go_on_ = earlier.may_go_on;
  return {};
}

std::optional<nlohmann::json> Game::Receive(Player& player, int wait_ms) {
  pollfd ready = {player.line.get(), POLLIN, 0};
  if (poll(&ready, 1, wait_ms) <= 0) return std::nullopt;
  std::string text(kMostBytes, '\0');
  const ssize_t size = recv(player.line.get(), text.data(), text.size(), 0);
  if (size < 0 && errno == EINTR) return std::nullopt;
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, size)));
  auto word = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (word.is_object() && word.contains("what")) return word;
  return nlohmann::json{{"what", "end"}, {"error", "its process has gone"}};
}

void Game::NoteEnd(Player& player, const nlohmann::json& end) {
  if (const auto trial = end.find("trial"); trial != end.end()) {
    if (auto read = TrialFrom(*trial)) player.trial = std::move(*read);
  }
  if (const auto by = end.find("interrupted_by"); by != end.end() && by->is_number_integer())
    interrupted_by_ = by->get<int>();
  player.line.reset();
}

Result<nlohmann::json> Game::Hear(Player& player, const std::string& what) {
  const auto& given_up = options().given_up;
  while (player.line.valid() && (!given_up || !given_up())) {
    auto word = Receive(player, kLookMs);
    if (!word) continue;
    if ((*word)["what"] == what) return std::move(*word);
    NoteEnd(player, *word);
    std::string why = word->value("error", "it ended");
    if (player.trial && !player.trial->ok() && !player.trial->why.empty()) why = player.trial->why;
    return Error{ErrorCode::kUnavailable, fmt::format("the {}: {}", player.name, why), ""};
  }
  return Error{ErrorCode::kUnavailable, "interrupted", ""};
}

Result<void> Game::RunSlice(Player& player) {
  const char word = may_go_on_ ? kRunBeside : kRun;
  (void)send(player.line.get(), &word, 1, MSG_NOSIGNAL);  // whether it has gone, its silence says
  const auto said = Hear(player, "slice");
  if (!said) return said.error();
  const Slice slice{said->value("seconds", 0.0),    said->value("steps", 0.0), said->value("samples", 0.0),
                    said->value("waited", 0.0),     said->value("burst", 1.0), said->value("paused", 0.0),
                    said->value("undisturbed", 1.0)};
  if (slice.steps <= 0)
    return Error{ErrorCode::kUnavailable, fmt::format("the {}: no rate is known", player.name), ""};
  player.slices.push_back(slice);
  return {};
}

double Game::HalfWidth() const {
  const RatesInTurns rates = RatesOf(players_[0].slices, players_[1].slices);
  const auto half_width = [](const Rate& rate) { return (rate.high - rate.low) / 2 / rate.mean; };
  return std::hypot(half_width(rates.before), half_width(rates.after));
}

bool Game::IsKnown() const {
  return players_[0].slices.size() >= kLeastSlices && HalfWidth() <= options().precision.half_width;
}

bool Game::IsWorthAnother(int64_t first_ns) const {
  const int64_t now_ns = MonotonicNs();
  const bool has_time = options().end_ns == 0 || options().end_ns - now_ns > now_ns - begin_ns_;
  return has_time && players_[0].slices.size() >= kLeastSlices &&
         AnotherTellsMore(HalfWidth() / kNormal95, Seconds(now_ns - first_ns), Seconds(first_ns - begin_ns_));
}

int64_t Game::EndOfShareNs() const {
  double seconds =
      std::min(kMostSecondsOfPair, options().precision.most_seconds) + Seconds(MonotonicNs() - begin_ns_);
  if (options().end_ns != 0)
    seconds = std::min(seconds, ShareOfPair(Seconds(options().end_ns - begin_ns_), pairs_before_));
  return begin_ns_ + static_cast<int64_t>(seconds * 1e9);
}

// Whether their time is over, with enough of both to tell something.
bool Game::IsCutShort() {
  const size_t count = std::min(players_[0].slices.size(), players_[1].slices.size());
  for (Player& player : players_) player.slices.resize(count);
  return count >= fewest() && options().end_ns != 0 && MonotonicNs() >= options().end_ns;
}

Result<void> Game::RunSlices() {
  const int64_t first_ns = MonotonicNs(), end_ns = EndOfShareNs();
  const auto enough = [&] {
    return IsKnown() || IsWorthAnother(first_ns) ||
           (MonotonicNs() >= end_ns && players_[0].slices.size() >= fewest());
  };
  while (!enough()) {
    const size_t first = coin_() & 1;
    for (const size_t index : {first, 1 - first}) {
      if (auto ran = RunSlice(players_[index]); !ran) return IsCutShort() ? CheckSlices() : ran;
    }
  }
  return CheckSlices();
}

bool Game::MayGoOn() const {
  return std::ranges::any_of(players_, [](const Player& player) {
    return player.uses_device || std::min(player.warm.waited, player.warm.blocked) > kWaits;
  });
}

Result<void> Game::CheckSlices() const {
  for (const Player& player : players_) {
    // A thread that is never blocked may still wait for others: it may ask again and again.
    const bool may_be_fed = may_go_on_ || player.warm.waited > kWaits;
    const auto went_on = may_be_fed ? WhatWentOn(player.slices, player.warm) : std::nullopt;
    if (went_on) return Error{ErrorCode::kUnsupported, fmt::format("the {} {}", player.name, *went_on), ""};
  }
  return {};
}

void Game::End() {
  for (Player& player : players_) {
    if (player.line.valid()) (void)shutdown(player.line.get(), SHUT_WR);
  }
  const int64_t end_ns = MonotonicNs() + static_cast<int64_t>(kEndSeconds * 1e9);
  for (Player& player : players_) {
    if (player.pid <= 0) continue;
    while (player.line.valid() && MonotonicNs() < end_ns) {
      const auto word = Receive(player, kLookMs);
      if (word && (*word)["what"] == "end") NoteEnd(player, *word);
    }
    if (player.line.valid()) (void)kill(player.pid, SIGKILL);  // its keeper ends the rest
    while (waitpid(player.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

// Beside another program one may fail for its sake: for lack of memory, or because of a port that both want. A setting
// that cannot be made has no such reason.
std::optional<Made> Game::FailedAlone() const {
  const auto& [baseline, candidate] = players_;
  if (candidate.pid < 0 && baseline.trial && !baseline.trial->ok())
    return Made{Side::kBaseline, *baseline.trial};
  if (candidate.trial && !candidate.trial->refused.empty()) return Made{Side::kCandidate, *candidate.trial};
  return std::nullopt;
}

Turns Game::Play(const std::optional<Acquaintance>& earlier) {
  Turns turns;
  pairs_before_ = earlier ? earlier->pairs : 0;
  auto played = earlier ? StartAgain(*earlier) : Start();
  if (!played) turns.failed = FailedAlone();
  if (played) played = RunSlices();
  End();
  turns.interrupted_by = interrupted_by_;
  if (played && (!players_[0].trial || !players_[1].trial))
    played = Error{ErrorCode::kUnavailable, "one of them did not end", ""};
  if (!played) {
    turns.why = played.error().text;
    return turns;
  }
  const RatesInTurns rates = RatesOf(players_[0].slices, players_[1].slices);
  for (Player& player : players_) {
    player.trial->outcome = Outcome::kOk;  // it ended when it was told to
    player.trial->why.clear();
    player.trial->in_slices = true;
    player.trial->noisy = !IsKnown();
    player.trial->unit = rates.counts_samples ? kSamplesPerSecond : kStepsPerSecond;
  }
  turns.seen = Acquaintance{{players_[0].warm, players_[1].warm}, may_go_on_, pairs_before_ + 1};
  players_[0].trial->rate = rates.before;
  players_[1].trial->rate = rates.after;
  turns.pair = PairOfTrials{std::move(*players_[0].trial), std::move(*players_[1].trial)};
  return turns;
}

}  // namespace

Turns TakeTurns(const Contender& baseline, const Contender& candidate,
                const std::optional<Acquaintance>& earlier) {
  return Game(baseline, candidate).Play(earlier);
}

}  // namespace fullbore::tune
