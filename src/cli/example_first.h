// Help that begins with an example, and names the whole command.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <utility>

#include "cli/help_layout.h"
#include "cli/output.h"

namespace fullbore::cli {

// No line is wider than the terminal.
class InColumns : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    const std::string help = CLI::Formatter::make_help(app, std::move(name), mode);
    if (mode == CLI::AppFormatMode::Sub) return help;  // a part of another's
    return HelpInColumns(help, std::min(OutputColumns(), kWidestHelp));
  }
};

class ExampleFirst : public InColumns {
 public:
  explicit ExampleFirst(std::string example) : example_(std::move(example)) {}
  const std::string& example() const { return example_; }
  std::string make_description(const CLI::App* app) const override {
    return "  " + example_ + "\n\n" + CLI::Formatter::make_description(app);
  }
  std::string make_usage(const CLI::App* app, std::string /*name*/) const override {
    std::string words = app->get_name();
    for (const CLI::App* above = app->get_parent(); above; above = above->get_parent()) {
      words = (above->get_parent() ? above->get_name() : "fullbore") + " " + words;
    }
    return CLI::Formatter::make_usage(app, words);
  }

 private:
  std::string example_;
};

}  // namespace fullbore::cli
