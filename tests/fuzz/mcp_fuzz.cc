// What a client writes to `fullbore mcp`, in pieces of one length: whatever it is, each line is answered with JSON, and
// nothing ends the server. Calls start nothing here; they end at once.
#include "base/result.h"
#include "fuzzed_input.h"
#include "mcp/server.h"

namespace fullbore::fuzz {
namespace {

class EndedJob : public mcp::Job {
 public:
  std::optional<mcp::Ended> Tick(int64_t) override {
    return mcp::Ended{0, "said", "said",
                      R"({"schema":"fullbore.report/1","findings":[{"id":"input-bound"}]})"};
  }
  void Stop(int64_t) override {}
  std::string last_line() const override { return "line"; }
};

class NoStarter : public mcp::Starter {
 public:
  Result<std::unique_ptr<mcp::Job>> Start(const mcp::Call&) override {
    return std::unique_ptr<mcp::Job>(std::make_unique<EndedJob>());
  }
};

mcp::Place Nowhere() {
  return {*mcp::AllowedPaths::Make({}), "runs",
          [](const std::string& runs, const std::string&) -> Result<std::string> { return runs + "/a.fbr"; }};
}

}  // namespace
}  // namespace fullbore::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fullbore;
  fuzz::Input input(data, size);
  fuzz::NoStarter starter;
  mcp::Server server({"1.0", (input.Byte() & 1) != 0, fuzz::Nowhere()}, starter,
                     [](const mcp::Json& message) { FB_CHECK(mcp::Json::accept(mcp::LineOf(message))); });
  server.Take(
      {R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{"elicitation":{}}}})",
       false});
  mcp::Lines lines;
  const size_t piece_bytes = 1 + 2 * size_t{input.Byte()};
  int64_t now_ns = 0;
  while (!input.empty()) {
    for (const mcp::Lines::Line& line : lines.Add(input.Bytes(piece_bytes))) server.Take(line);
    server.Tick(now_ns += 500'000'000);
  }
  server.StopAll(now_ns);
  server.Tick(now_ns + 1);
  FB_CHECK(!server.busy());
  return 0;
}
