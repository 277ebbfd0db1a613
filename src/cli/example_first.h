// Help that begins with an example.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace fullbore::cli {

class ExampleFirst : public CLI::Formatter {
 public:
  explicit ExampleFirst(std::string example) : example_(std::move(example)) {}
  std::string make_description(const CLI::App* app) const override {
    return "  " + example_ + "\n\n" + CLI::Formatter::make_description(app);
  }

 private:
  std::string example_;
};

}  // namespace fullbore::cli
