#include "cli/man_pages.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include "base/guarded_file.h"
#include "base/text.h"
#include "cli/example_first.h"
#include "cli/output.h"
#include "cli/subcommand.h"

namespace fullbore::cli {

namespace {

using Apps = std::vector<const CLI::App*>;

Apps SubcommandsOf(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// "fullbore loader bench", with another separator where asked for.
std::string FullName(const CLI::App& app, char separator) {
  if (app.get_parent() == nullptr) return "fullbore";
  return FullName(*app.get_parent(), separator) + separator + app.get_name();
}

// As troff takes it for text: its own characters mean themselves, and a dash can be copied as the one that was typed.
std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

// A line of text; one that begins like a request of troff is none.
std::string Line(std::string_view text) {
  const bool like_request = text.starts_with('.') || text.starts_with('\'');
  return (like_request ? "\\&" : "") + Escaped(text) + "\n";
}

// A description: broken anew by the reader's terminal, but for the lines of a table, "name     what it does".
std::string Paragraph(const std::string& description) {
  std::string out;
  bool in_table = false;
  for (const std::string_view line : Split(description, '\n')) {
    const bool is_row = Trim(line).find("   ") != std::string_view::npos;
    if (is_row != std::exchange(in_table, is_row)) out += is_row ? ".nf\n" : ".fi\n";
    out += Line(is_row ? line : Trim(line));
  }
  return out + (in_table ? ".fi\n" : "");
}

std::string Section(std::string_view heading, std::string_view body) {
  return body.empty() ? "" : fmt::format(".SH {}\n{}", heading, body);
}

std::string Bold(std::string_view text) { return "\\fB" + Escaped(text) + "\\fR"; }
std::string Italic(std::string_view text) { return "\\fI" + Escaped(text) + "\\fR"; }

std::string Names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back(Bold("-" + name));
  for (const std::string& name : option.get_lnames()) names.push_back(Bold("--" + name));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string Value(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return "";
  std::string value = " " + Italic(option.get_type_name());
  if (!option.get_default_str().empty()) value += Escaped(" (default: " + option.get_default_str() + ")");
  return value;
}

std::string OptionEntry(const CLI::Option& option) {
  const std::string head =
      option.get_positional() ? Italic(option.get_name(true)) : Names(option) + Value(option);
  return ".TP\n" + head + "\n" + Paragraph(option.get_description());
}

std::string Options(const CLI::App& app, bool positional) {
  std::string all;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() == positional && !option->get_group().empty()) all += OptionEntry(*option);
  }
  return all;
}

std::string Synopsis(const CLI::App& app) {
  std::string line = Bold(FullName(app, ' '));
  if (!SubcommandsOf(app).empty()) line += " [" + Italic("COMMAND") + "]";
  line += " [" + Italic("OPTIONS") + "]";
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name =
        Italic(option->get_name(true)) + (option->get_items_expected_max() > 1 ? "..." : "");
    line += option->get_required() ? " " + name : " [" + name + "]";
  }
  return line + "\n";
}

std::string Examples(const CLI::App& app) {
  const auto formatter = std::dynamic_pointer_cast<ExampleFirst>(app.get_formatter());
  std::string all;
  if (!formatter) return all;
  for (const std::string_view line : Split(formatter->example(), '\n')) all += Line(Trim(line));
  return ".nf\n" + all + ".fi\n";
}

std::string Commands(const CLI::App& app) {
  std::string all;
  for (const CLI::App* sub : SubcommandsOf(app))
    all += ".TP\n" + Bold(FullName(*sub, '-')) + "(1)\n" + Paragraph(sub->get_description());
  return all;
}

std::string ExitStatus() {
  return fmt::format(
      ".TP\n0\nWhat was asked for is done.\n.TP\n{}\nIt failed.\n.TP\n{}\nThe command line is wrong, or names "
      "what does not exist.\n.TP\n{}\nA condition of \\fBcompare \\-\\-fail\\-if\\fR holds.\n.PP\n"
      "\\fBfullbore run\\fR ends with the exit status of the command that it ran.\n",
      kExitFailure, kExitUsage, kExitCondition);
}

// A name of one line: what the index of manual pages shows.
std::string Summary(const CLI::App& app) {
  if (app.get_parent() != nullptr) return app.get_description();
  const std::string& all = app.get_description();
  return all.substr(0, all.find('\n'));
}

std::string SeeAlso(const CLI::App& app) {
  if (app.get_parent() != nullptr) return Bold(FullName(*app.get_parent(), '-')) + "(1)\n";
  return "\\fBfullbore help\\fR \\fIFINDING\\fR explains what the report names.\n";
}

Result<void> WriteWithParts(const CLI::App& app, std::string_view date, const std::string& directory) {
  auto written =
      WriteFileAtOnce(directory + "/" + FullName(app, '-') + ".1", ManPageOf(app, date), kOrdinaryFile);
  for (const CLI::App* sub : SubcommandsOf(app)) {
    if (written) written = WriteWithParts(*sub, date, directory);
  }
  return written;
}

std::string DateOfBuild() {
  const char* given = std::getenv("SOURCE_DATE_EPOCH");
  const auto seconds = given == nullptr ? std::nullopt : ParseInt(given);
  return fmt::format("{:%Y-%m-%d}",
                     fmt::gmtime(static_cast<std::time_t>(seconds.value_or(std::time(nullptr)))));
}

}  // namespace

std::string ManPageOf(const CLI::App& app, std::string_view date) {
  const std::string name = FullName(app, '-');
  std::string title = name;
  for (char& c : title) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return fmt::format(".TH {} 1 {} fullbore \"User Commands\"\n", Escaped(title), date) +
         Section("NAME", Escaped(name) + " \\- " + Line(Summary(app))) + Section("SYNOPSIS", Synopsis(app)) +
         Section("DESCRIPTION", Paragraph(app.get_description())) + Section("EXAMPLES", Examples(app)) +
         Section("ARGUMENTS", Options(app, true)) + Section("OPTIONS", Options(app, false)) +
         Section("COMMANDS", Commands(app)) + Section("EXIT STATUS", ExitStatus()) +
         Section("SEE ALSO", SeeAlso(app));
}

int WriteManPages(const CLI::App& app, const std::string& directory) {
  auto written = MakeDirectory(directory, 0755);
  if (written) written = WriteWithParts(app, DateOfBuild(), directory);
  return written ? 0 : Fail(written.error(), kExitFailure);
}

}  // namespace fullbore::cli
