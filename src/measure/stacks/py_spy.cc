#include "measure/stacks/py_spy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <utility>
#include <vector>

#include "base/exec.h"
#include "base/guarded_file.h"
#include "base/text.h"

namespace fullbore::stacks {

namespace {

std::string FileIn(const TemporaryDirectory& place) { return place.path() + "/profile.json"; }

}  // namespace

Result<PySpy> PySpy::Start(const std::string& program, int64_t pid, int64_t seconds) {
  auto place = TemporaryDirectory::Make();
  if (!place) return place.error();
  UniqueFd said(memfd_create("fullbore-py-spy", MFD_CLOEXEC));
  PySpy spy(std::move(*place), std::move(said));
  spy.target_ = pid;
  // Without --nonblocking it would stop the training for each sample, and leave it stopped if it were killed then.
  SpawnOptions options;
  options.output = options.errors = spy.said_.get();
  const int error = Spawn(
      {program, "record", "--pid", std::to_string(pid), "--format", "speedscope", "--output",
       FileIn(spy.place_), "--duration", std::to_string(seconds), "--rate", std::to_string(kSamplesPerSecond),
       "--subprocesses", "--threads", "--idle", "--full-filenames", "--nonblocking"},
      options, spy.pid_);
  if (error != 0) {
    spy.pid_ = -1;
    return Error{ErrorCode::kUnavailable, fmt::format("cannot start '{}': {}", program, strerror(error)),
                 "pip install --force-reinstall py-spy"};
  }
  return spy;
}

PySpy::PySpy(PySpy&& other) noexcept
    : place_(std::move(other.place_)),
      said_(std::move(other.said_)),
      pid_(std::exchange(other.pid_, -1)),
      target_(other.target_),
      status_(other.status_) {}

PySpy::~PySpy() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool PySpy::HasEnded() {
  if (pid_ > 0 && waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = -1;
  return pid_ <= 0;
}

void PySpy::Stop() {
  if (pid_ > 0) kill(pid_, SIGINT);
}

std::string PySpy::Said() const {
  std::string last;
  if (lseek(said_.get(), 0, SEEK_SET) != 0) return last;
  const auto text = ReadToEnd(said_.get(), "what py-spy said");
  if (!text) return last;
  for (const std::string_view line : Split(*text, '\n')) {
    if (!Trim(line).empty()) last = Trim(line);
  }
  return last;
}

Result<Profile> PySpy::Take() {
  const auto file = OpenRegularFile(FileIn(place_));
  const auto text = file ? ReadToEnd(file->get(), FileIn(place_)) : Result<std::string>(file.error());
  if (!text || Trim(*text).empty()) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("py-spy could not sample process {}: {}", target_,
                             Said().empty() ? "it left nothing" : Said()),
                 "py-spy reads CPython 2.3 to 3.13; a newer one may know this Python: pip install -U py-spy"};
  }
  return ReadSpeedscope(*text);
}

}  // namespace fullbore::stacks
