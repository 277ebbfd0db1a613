#include "base/result_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/temporary_directory.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr char kOurs[] = "{\n  \"schema\": \"fullbore.report/1\",\n  \"old\": true\n}\n";
constexpr char kNew[] = "{\n  \"schema\": \"fullbore.report/1\"\n}\n";

class ResultFileTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return directory_->path() + "/" + name; }
  std::string Put(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name)) << text;
    return Path(name);
  }
  static std::string TextOf(const std::string& path) { return ReadFile(path).value(); }
  static ResultFile Json(const std::string& path, bool force = false) {
    ResultFile file("--json", kJsonResult);
    file.path = path;
    file.force = force;
    return file;
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_->path()))
      names.push_back(entry.path().filename());
    return names;
  }
  static void ExpectRefused(const ResultFile& file, const std::string& why) {
    const auto judged = file.Judge();
    ASSERT_FALSE(judged.ok()) << file.path;
    EXPECT_EQ(judged.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(judged.error().text, HasSubstr(why));
    EXPECT_FALSE(file.Write(kNew).ok()) << "judged again";
  }
  static mode_t KindOf(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(lstat(path.c_str(), &status), 0) << path;
    return status.st_mode & S_IFMT;
  }

  Result<TemporaryDirectory> directory_ = TemporaryDirectory::Make();
};

TEST_F(ResultFileTest, ANewAnEmptyAndAnOwnFileAreWritten) {
  for (const std::string& path : {Path("new"), Put("empty", ""), Put("ours", kOurs)}) {
    ASSERT_TRUE(Json(path).Judge().ok());
    ASSERT_TRUE(Json(path).Write(kNew).ok());
    EXPECT_EQ(TextOf(path), kNew);
  }
  EXPECT_THAT(Names(), UnorderedElementsAre("new", "empty", "ours")) << "nothing is left beside them";
}

TEST_F(ResultFileTest, OfManyThatWriteOneNewFileAtTheSameTimeNoneFails) {
  constexpr int kRounds = 20, kWriters = 8;
  for (int round = 0; round < kRounds; ++round) {
    const std::string path = Path("new" + std::to_string(round));
    std::atomic<int> written = 0;
    std::vector<std::thread> writers;
    for (int i = 0; i < kWriters; ++i) writers.emplace_back([&] { written += Json(path).Write(kOurs).ok(); });
    for (std::thread& writer : writers) writer.join();
    ASSERT_EQ(written, kWriters);
    EXPECT_EQ(TextOf(path), kOurs);
  }
}

TEST_F(ResultFileTest, JudgingCreatesNothing) {
  ASSERT_TRUE(Json(Path("new")).Judge().ok());
  EXPECT_FALSE(fs::exists(Path("new")));
}

TEST_F(ResultFileTest, WhatSomebodyElseWroteIsReplacedByForceAlone) {
  const std::string path = Put("theirs", "import torch\n");
  ExpectRefused(Json(path), "'" + path + "' is there already");
  EXPECT_THAT(Json(path).Judge().error().hint, testing::AllOf(HasSubstr("--json -"), HasSubstr("--force")));
  EXPECT_EQ(TextOf(path), "import torch\n");
  ASSERT_TRUE(Json(path, true).Write(kNew).ok());
  EXPECT_EQ(TextOf(path), kNew);
}

TEST_F(ResultFileTest, AResultOfAnotherFormatIsNotReplaced) {
  ResultFile page("--html", kHtmlResult);
  page.path = Put("answer.json", kOurs);
  ExpectRefused(page, "is not a page");
}

TEST_F(ResultFileTest, AFileThatAppearsWhileTheCommandWorksIsKept) {
  const ResultFile file = Json(Path("later"));
  ASSERT_TRUE(file.Judge().ok());
  Put("later", "of the training");
  EXPECT_FALSE(file.Write(kNew).ok());
  EXPECT_EQ(TextOf(Path("later")), "of the training");
}

TEST_F(ResultFileTest, MarksAreThoseOfResults) {
  EXPECT_TRUE(kJsonResult.is_ours(R"({"schema":"fullbore.measure/1","settings":{}})"));
  EXPECT_TRUE(kJsonResult.is_ours(R"({"schema":"fullbore.contest/1","baseline":{}})"));
  EXPECT_TRUE(kJsonResult.is_ours("[\n  {\n    \"format\": \"fullbore.alert/1\"")) << "an array of such";
  EXPECT_TRUE(kJsonResult.is_ours("[]\n"));
  EXPECT_TRUE(
      kJsonResult.is_ours("[\n  {\n    \"id\": \"a\",\n    \"path\": \"b\",\n    \"begin_unix_ns\": 1,"));
  EXPECT_FALSE(kJsonResult.is_ours(R"({"schema":"fullbore.tune-trials/1"})")) << "what tune keeps, to go on";
  EXPECT_FALSE(kJsonResult.is_ours(R"({"about": {"schema": "fullbore.report/1"}})"));
  EXPECT_FALSE(kJsonResult.is_ours(R"({"schemaVersion": 1, "traceEvents": []})"));
  EXPECT_FALSE(kJsonResult.is_ours(R"({"schema":"fullbore.export/1"})")) << "a trace is read again";
  EXPECT_TRUE(kTraceResult.is_ours(R"({"schema":"fullbore.export/1","displayTimeUnit":"ms")"));
  EXPECT_FALSE(kTraceResult.is_ours(std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03 and so on", 20)));
  EXPECT_TRUE(kDiffResult.is_ours(std::string(kDiffMark) + "--- train.py\n"));
  EXPECT_FALSE(kDiffResult.is_ours("--- train.py\n+++ train.py\n"));
  EXPECT_FALSE(kHtmlResult.is_ours("<!doctype html>\n<html><title>fullbore</title>"));
  EXPECT_TRUE(kHtmlResult.is_ours("<!doctype html>\n<meta name=\"generator\" content=\"fullbore\">"));
  constexpr char kOlderPage[] =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta http-equiv=\"Content-Security-Policy\"\n      "
      "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src "
      "data:\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>";
  EXPECT_TRUE(kHtmlResult.is_ours(kOlderPage));
}

TEST_F(ResultFileTest, AnOwnFileKeepsWhatItAllowsToOthers) {
  const std::string path = Put("ours", kOurs);
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  ASSERT_TRUE(Json(path).Write(kNew).ok());
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
}

TEST_F(ResultFileTest, ALinkIsFollowedAndItsTargetJudged) {
  Put("theirs", "precious");
  Put("ours", kOurs);
  ASSERT_TRUE(fs::create_directory(Path("below")));
  for (const char* name : {"theirs", "ours", "missing"})
    fs::create_symlink(std::string("../") + name, Path(std::string("below/") + name));
  ExpectRefused(Json(Path("below/theirs")), "is there already");
  ASSERT_TRUE(Json(Path("below/ours")).Write(kNew).ok());
  ASSERT_TRUE(Json(Path("below/missing")).Write(kNew).ok());
  EXPECT_EQ(TextOf(Path("ours")), kNew);
  EXPECT_EQ(TextOf(Path("missing")), kNew) << "a dangling link gets its file";
  for (const char* name : {"below/theirs", "below/ours", "below/missing"})
    EXPECT_EQ(KindOf(Path(name)), static_cast<mode_t>(S_IFLNK)) << name;
  EXPECT_EQ(TextOf(Path("theirs")), "precious");
}

TEST_F(ResultFileTest, LinksInACircleAreAnError) {
  fs::create_symlink("b", Path("a"));
  fs::create_symlink("a", Path("b"));
  EXPECT_FALSE(Json(Path("a")).Write(kNew).ok());
}

TEST_F(ResultFileTest, TheOtherNameOfAHardLinkKeepsWhatItHas) {
  fs::create_hard_link(Put("ours", kOurs), Path("other"));
  ASSERT_TRUE(Json(Path("ours")).Write(kNew).ok());
  EXPECT_EQ(TextOf(Path("other")), kOurs);
}

TEST_F(ResultFileTest, ADirectoryASocketAndADiskAreRefusedByForce) {
  ExpectRefused(Json(directory_->path(), true), "is a directory");
  const UniqueFd socket_fd(socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  Path("socket").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ExpectRefused(Json(Path("socket"), true), "is a socket");
  if (mknod(Path("disk").c_str(), S_IFBLK | 0600, makedev(7, 250)) == 0)
    ExpectRefused(Json(Path("disk"), true), "is a disk");
}

TEST_F(ResultFileTest, ADeviceIsWrittenThroughAndStays) {
  if (mknod(Path("null").c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0) GTEST_SKIP() << "needs to be root";
  const UniqueFd opens(open(Path("null").c_str(), O_WRONLY | O_CLOEXEC));
  if (!opens.valid()) GTEST_SKIP() << "no devices on this file system";
  fs::create_symlink("null", Path("link"));
  ASSERT_EQ(mknod(Path("full").c_str(), S_IFCHR | 0666, makedev(1, 7)), 0);
  EXPECT_TRUE(Json(Path("null")).Write(kNew).ok());
  EXPECT_TRUE(Json(Path("link")).Write(kNew).ok());
  EXPECT_EQ(KindOf(Path("null")), static_cast<mode_t>(S_IFCHR));
  EXPECT_EQ(KindOf(Path("link")), static_cast<mode_t>(S_IFLNK));
  const auto written = Json(Path("full")).Write(kNew);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, ErrorCode::kNoSpace);
}

TEST_F(ResultFileTest, AFifoGetsTheTextAndStays) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = TextOf(Path("fifo")); });
  EXPECT_TRUE(Json(Path("fifo")).Write(kNew).ok());
  reader.join();
  EXPECT_EQ(got, kNew);
  EXPECT_EQ(KindOf(Path("fifo")), static_cast<mode_t>(S_IFIFO));
}

TEST_F(ResultFileTest, AFifoThatNobodyReadsIsAnErrorInTheEnd) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  const auto written = Json(Path("fifo")).Write(kNew);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, ErrorCode::kTimeout);
}

TEST_F(ResultFileTest, ADescriptorIsWrittenWhereItStands) {
  const UniqueFd log(open(Path("log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  ASSERT_EQ(write(log.get(), "before\n", 7), 7);
  const std::string number = std::to_string(log.get());
  fs::create_symlink("/proc/self/fd/" + number, Path("link"));
  for (const std::string& path : {"/dev/fd/" + number, "/proc/self/fd/" + number, Path("link")})
    ASSERT_TRUE(Json(path).Write("after\n").ok()) << path;
  EXPECT_EQ(TextOf(Path("log")), "before\nafter\nafter\nafter\n");
  const UniqueFd readable(open(Path("log").c_str(), O_RDONLY | O_CLOEXEC));
  ExpectRefused(Json("/dev/fd/" + std::to_string(readable.get())), "not open for writing");
  ExpectRefused(Json("/dev/fd/987654"), "not open for writing");
}

TEST_F(ResultFileTest, AReaderThatHasGoneIsAnErrorAndNoSignal) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  UniqueFd reader(ends[0]), writer(ends[1]);
  reader.reset();
  const auto written = Json("/dev/fd/" + std::to_string(writer.get())).Write(kNew);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, ErrorCode::kUnavailable);
}

TEST_F(ResultFileTest, AnInputIsRefusedUnderEveryNameByForce) {
  const std::string input = Put("input.json", kOurs);
  fs::create_hard_link(input, Path("hard"));
  fs::create_symlink("input.json", Path("soft"));
  for (const std::string& path : {input, Path("hard"), Path("soft"), Path("./input.json")}) {
    ResultFile file = Json(path, true);
    file.inputs.Add(Path("input.json"));
    ExpectRefused(file, "is an input of this command");
    EXPECT_THAT(file.Judge().error().hint, HasSubstr("is the name of the output missing?"));
  }
  EXPECT_EQ(TextOf(input), kOurs);
}

TEST_F(ResultFileTest, WhatIsInADirectoryThatIsReadIsAnInput) {
  ASSERT_TRUE(fs::create_directory(Path("traces")));
  Put("traces/rank0.json", "{}");
  fs::create_hard_link(Path("traces/rank0.json"), Path("elsewhere"));
  fs::create_symlink("../outside", Path("traces/linked.json"));
  Put("outside", "{}");
  for (const char* name : {"traces/rank0.json", "elsewhere", "outside"}) {
    ResultFile file = Json(Path(name), true);
    file.inputs.Add(Path("traces"));
    ExpectRefused(file, "is an input of this command");
  }
  ResultFile fresh = Json(Path("traces/new.json"));
  fresh.inputs.Add(Path("traces"));
  EXPECT_TRUE(fresh.Judge().ok());
  ResultFile page("--html", kHtmlResult);
  page.path = Put("traces/page.html", "<!doctype html>\n<meta name=\"generator\" content=\"fullbore\">\n");
  page.inputs.Add(Path("traces"));
  EXPECT_TRUE(page.Judge().ok()) << "a page of ours is none of the traces";
}

TEST_F(ResultFileTest, FilesAmongTheWordsOfACommandAreInputs) {
  ASSERT_TRUE(fs::create_directory(Path("data")));
  const std::string script = Put("train.py", kOurs), config = Put("a.yaml", kOurs), list = Put("list", kOurs);
  const std::string inside = Put("data/report.json", kOurs);
  InputFiles inputs;
  inputs.AddCommand(
      {"python", script, "--config=" + config, "sh", "-c", "cat '" + list + "'|sort", Path("data")});
  for (const std::string& path : {script, config, list}) {
    ResultFile file = Json(path, true);
    file.inputs = inputs;
    ExpectRefused(file, "is an input of this command");
  }
  ResultFile beside = Json(inside);
  beside.inputs = inputs;
  EXPECT_TRUE(beside.Judge().ok()) << "the command may write to that directory as well";
}

TEST_F(ResultFileTest, AFullDiskLeavesTheOldFileWhole) {
  ASSERT_TRUE(fs::create_directory(Path("disk")));
  if (mount("none", Path("disk").c_str(), "tmpfs", 0, "size=64k") != 0) GTEST_SKIP() << "cannot mount here";
  const std::string path = Put("disk/answer.json", kOurs);
  const auto written = Json(path).Write(std::string(kNew) + std::string(256 << 10, ' '));
  const std::string left = TextOf(path);
  const auto entries = std::distance(fs::directory_iterator(Path("disk")), fs::directory_iterator());
  umount2(Path("disk").c_str(), MNT_DETACH);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, ErrorCode::kNoSpace);
  EXPECT_EQ(left, kOurs);
  EXPECT_EQ(entries, 1) << "nothing half-written is left";
}

TEST_F(ResultFileTest, AMissingDirectoryIsAnErrorOfWriting) {
  EXPECT_TRUE(Json(Path("no/answer.json")).Judge().ok()) << "the command may make it";
  const auto written = Json(Path("no/answer.json")).Write(kNew);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, ErrorCode::kNotFound);
}

TEST_F(ResultFileTest, WhatComesPieceByPieceIsAddedAtTheEnd) {
  const std::string path = Put("ours", kOurs);
  const auto opened = Json(path).Open();
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(TextOf(path), "");
  ASSERT_TRUE(WriteToEnd(opened->get(), "one\n", path).ok());
  ASSERT_TRUE(WriteToEnd(opened->get(), "two\n", path).ok());
  EXPECT_EQ(TextOf(path), "one\ntwo\n");
}

TEST_F(ResultFileTest, TwoNamesOfOnePlaceAreTheSame) {
  fs::create_symlink("a", Path("b"));
  EXPECT_TRUE(Json(Path("a")).IsSameAs(Json(Path("b"))));
  EXPECT_FALSE(Json(Path("a")).IsSameAs(Json(Path("c"))));
  EXPECT_TRUE(Json("-").IsSameAs(Json("/dev/fd/1")));
  EXPECT_FALSE(Json("").IsSameAs(Json("")));
}

}  // namespace
}  // namespace fullbore
