// Writes runs for tests and measurements of what follows them:
//
//   made_runs DIR NAME ENDED LIVE SECONDS [PAST] [CORES]
//
// ENDED runs of 30 s each, NAME-0 to ..., every second of which waits for data; and LIVE ones, NAME-live-0 to ..., that
// begin PAST seconds long and grow by a second each second, for SECONDS, and then end. "ready" on standard output once
// all are there. CORES adds as many series to the live ones.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "watch/testing/live_writer.h"

int main(int argc, char** argv) {
  using fullbore::watch::testing::LiveWriter;
  if (argc < 6) {
    std::fprintf(stderr, "usage: made_runs DIR NAME ENDED LIVE SECONDS [PAST] [CORES]\n");
    return 2;
  }
  const std::string directory = argv[1], name = argv[2];
  const auto number = [&](int at, int usual) { return argc > at ? std::atoi(argv[at]) : usual; };
  std::filesystem::create_directories(directory);
  for (int i = 0; i < number(3, 0); ++i)
    LiveWriter(directory, name + "-" + std::to_string(i), i % 2 ? 0.1 : 0.6).Seconds(30).End(i % 10 == 9);
  std::vector<LiveWriter> live;
  for (int i = 0; i < number(4, 0); ++i) {
    live.emplace_back(directory, name + "-live-" + std::to_string(i), 0.6, number(7, 0));
    live.back().Seconds(number(6, 5));
  }
  std::puts("ready");
  std::fflush(stdout);
  for (int second = 0; second < number(5, 0); ++second) {
    sleep(1);
    for (LiveWriter& writer : live) writer.Seconds(1);
  }
  for (LiveWriter& writer : live) writer.End();
  return 0;
}
