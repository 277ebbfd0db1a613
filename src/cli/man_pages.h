// The manual pages: fullbore.1, and one for each subcommand (fullbore-loader-bench.1); `man fullbore run` finds that of
// `run`, too. Made from the same table as --help; the build asks the program for them:
//
//   $ fullbore __man-pages build/release/man
#pragma once

#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace fullbore::cli {

inline constexpr std::string_view kManPagesCall = "__man-pages";

// In man(7). `date` stands at the foot, "2026-11-29".
std::string ManPageOf(const CLI::App& app, std::string_view date);

// Writes all pages into a directory, made if missing. Returns the exit status. The date is today's, or that of
// SOURCE_DATE_EPOCH, for builds that can be repeated.
int WriteManPages(const CLI::App& app, const std::string& directory);

}  // namespace fullbore::cli
