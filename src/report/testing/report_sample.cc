// Writes every made-up run as it is reported, for screenshots and for the tests in tests/report:
//
//   report_sample DIR     DIR/<sample>.html, .json, .txt (100 columns), .ansi.txt (with colours)

#include <cstdio>
#include <fstream>

#include "report/html.h"
#include "report/json.h"
#include "report/terminal.h"
#include "report/testing/samples.h"

namespace {

bool Write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) std::fprintf(stderr, "report_sample: cannot write '%s'\n", path.c_str());
  return static_cast<bool>(file);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace fullbore::report;
  if (argc != 2) {
    std::fprintf(stderr, "usage: report_sample DIR\n");
    return 2;
  }
  for (const ::fullbore::report::testing::Sample& sample : ::fullbore::report::testing::AllSamples()) {
    const std::string stem = std::string(argv[1]) + "/" + sample.name;
    const FurtherReading further{stem + ".html", "fullbore explain " + sample.diagnosis.run_id};
    const bool written = Write(stem + ".html", ToHtml(sample.diagnosis, sample.recording)) &&
                         Write(stem + ".json", ToJsonText(sample.diagnosis)) &&
                         Write(stem + ".txt", ToTerminal(sample.diagnosis, {100, false, true}, further)) &&
                         Write(stem + ".ansi.txt", ToTerminal(sample.diagnosis, {160, true, true}, further));
    if (!written) return 1;
  }
  return 0;
}
