// store_fetch URL: what the remote store makes of a URL, for tests that drive
// it from outside. Prints one JSON object a line: files of a listing, what
// was read, the messages, the error. Exit status 0, or 1 after an error.
#include <openssl/evp.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <filesystem>
#include <iostream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "loader/core/source/remote/remote_store.h"

namespace fullbore::loader {
namespace {

using Json = nlohmann::json;

struct Arguments {
  std::string url;
  bool list = false, shuffled = false, wait_before_read = false;
  uint64_t offset = 0, length = 0, piece = 0;
  int threads = 1, repeat = 1;
  double cancel_after_s = 0;
  SourceOptions options;
};

void Print(const Json& line) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  // Keys may hold bytes that are not UTF-8.
  std::cout << line.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
}

// Those that a store returns.
std::string NameOf(ErrorCode code) {
  static const std::map<ErrorCode, std::string> kNames = {{ErrorCode::kInvalidArgument, "invalid argument"},
                                                          {ErrorCode::kNotFound, "not found"},
                                                          {ErrorCode::kPermission, "permission"},
                                                          {ErrorCode::kCorrupt, "corrupt"},
                                                          {ErrorCode::kUnsupported, "unsupported"},
                                                          {ErrorCode::kUnavailable, "unavailable"}};
  const auto found = kNames.find(code);
  return found == kNames.end() ? "another code" : found->second;
}

void PrintMessages(Store& store) {
  for (const auto& message : store.TakeMessages()) Print({{"message", message.text}});
}

int Fail(Store* store, const Error& error) {
  if (store != nullptr) PrintMessages(*store);
  Print({{"error", NameOf(error.code)}, {"text", error.text}, {"hint", error.hint}});
  return 1;
}

std::string Sha256(const std::vector<uint8_t>& bytes) {
  unsigned char digest[32];
  EVP_Digest(bytes.data(), bytes.size(), digest, nullptr, EVP_sha256(), nullptr);
  std::string hex;
  for (const unsigned char byte : digest) {
    char text[3];
    std::snprintf(text, sizeof text, "%02x", byte);
    hex += text;
  }
  return hex;
}

// What a leak would show in; after the reads, while the store is still open, and after it is gone.
Json Resources() {
  size_t fds = 0, threads = 0;
  for ([[maybe_unused]] const auto& fd : std::filesystem::directory_iterator("/proc/self/fd")) ++fds;
  for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task")) ++threads;
  return {{"fds", fds}, {"threads", threads}};
}

// What there is in the end, once it is no more than before:
// a thread that was joined is listed for a moment still.
Json ResourcesAtEnd(const Json& before) {
  constexpr int kPatienceMs = 10'000;
  Json now = Resources();
  for (int waited_ms = 0; now != before && waited_ms < kPatienceMs; ++waited_ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    now = Resources();
  }
  return now;
}

// Reads the range in pieces, in threads that take the next piece each, as a loader's do.
Result<void> ReadPieces(Store& store, const StoredFile& file, const Arguments& arguments,
                        std::vector<uint8_t>& out) {
  const uint64_t piece = arguments.piece == 0 ? std::max<uint64_t>(out.size(), 1) : arguments.piece;
  std::vector<uint64_t> starts;
  for (uint64_t at = 0; at < out.size(); at += piece) starts.push_back(at);
  if (arguments.shuffled) std::shuffle(starts.begin(), starts.end(), std::mt19937(1));
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::optional<Error> first_error;
  std::vector<std::thread> threads;
  for (int i = 0; i < arguments.threads; ++i) {
    threads.emplace_back([&] {
      for (size_t at = next++; at < starts.size(); at = next++) {
        const uint64_t bytes = std::min<uint64_t>(piece, out.size() - starts[at]);
        const auto read =
            store.Read(file, arguments.offset + starts[at], std::span(out).subspan(starts[at], bytes));
        if (read) continue;
        std::lock_guard lock(mutex);
        if (!first_error) first_error = read.error();
        return;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  if (first_error) return *first_error;
  return {};
}

int List(Store& store, const std::string& prefix) {
  const auto files = store.List(prefix);
  if (!files) return Fail(&store, files.error());
  for (const auto& file : *files) {
    Print({{"path", file.path}, {"bytes", file.bytes}, {"version", file.version}});
  }
  PrintMessages(store);
  return 0;
}

int Fetch(Store& store, const Arguments& arguments) {
  const auto file = store.Stat(arguments.url);
  if (!file) return Fail(&store, file.error());
  Print({{"path", file->path}, {"bytes", file->bytes}, {"version", file->version}});
  if (arguments.wait_before_read) std::cin.get();
  const uint64_t rest = file->bytes - std::min(arguments.offset, file->bytes);
  std::vector<uint8_t> bytes(arguments.length == 0 ? rest : arguments.length);
  for (int i = 0; i < arguments.repeat; ++i) {
    const int64_t begin = MonotonicNs();
    const auto read = ReadPieces(store, *file, arguments, bytes);
    if (!read) return Fail(&store, read.error());
    Print({{"sha256", Sha256(bytes)}, {"length", bytes.size()}, {"ns", MonotonicNs() - begin}});
  }
  PrintMessages(store);
  return 0;
}

int Run(const Arguments& arguments) {
  const Json before = Resources();
  int status = 0;
  Json during;
  {
    auto opened = OpenRemoteStore(arguments.url, arguments.options);
    if (!opened) return Fail(nullptr, opened.error());
    Store& store = **opened;
    std::thread canceller;
    if (arguments.cancel_after_s > 0) {
      canceller = std::thread([&] {
        std::this_thread::sleep_for(std::chrono::duration<double>(arguments.cancel_after_s));
        store.Cancel();
      });
    }
    status = arguments.list ? List(store, arguments.url) : Fetch(store, arguments);
    if (canceller.joinable()) canceller.join();
    during = Resources();
  }
  Print({{"before", before}, {"open", during}, {"after", ResourcesAtEnd(before)}});
  return status;
}

}  // namespace
}  // namespace fullbore::loader

int main(int argc, char** argv) {
  fullbore::loader::Arguments arguments;
  CLI::App app{"Reads a URL through the remote store"};
  app.add_option("url", arguments.url)->required();
  app.add_flag("--list", arguments.list);
  app.add_option("--offset", arguments.offset);
  app.add_option("--length", arguments.length, "0: to the end");
  app.add_option("--piece", arguments.piece, "bytes a read; 0: one read");
  app.add_flag("--shuffled", arguments.shuffled, "the pieces in another order");
  app.add_option("--threads", arguments.threads);
  app.add_option("--repeat", arguments.repeat, "reads it so often, through one store");
  app.add_option("--cancel-after", arguments.cancel_after_s);
  app.add_flag("--wait-before-read", arguments.wait_before_read, "for a byte on standard input");
  app.add_option("--cache", arguments.options.cache_directory);
  app.add_option("--cache-bytes", arguments.options.cache_bytes);
  app.add_option("--endpoint", arguments.options.s3_endpoint);
  app.add_option("--timeout", arguments.options.timeout_s);
  app.add_option("--retries", arguments.options.retries);
  CLI11_PARSE(app, argc, argv);
  return fullbore::loader::Run(arguments);
}
