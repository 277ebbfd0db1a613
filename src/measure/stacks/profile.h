// What py-spy recorded of a process and its children: who was where at each sample. Read from the speedscope format
// (https://www.speedscope.app/file-format-schema.json): of py-spy's formats the one that keeps the samples' order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fullbore::stacks {

struct Frame {
  std::string function;  // "step"; of "Trainer.step" only the last word
  std::string file;      // as the interpreter knows it
  int line = 0;
  std::string module;    // "torch.optim.sgd"; empty for the user's own code
  bool is_user = false;  // neither installed, nor Python's, nor generated, nor ours
};

using Stack = std::vector<uint32_t>;  // indices of frames, outermost first

struct Thread {
  int64_t pid = 0;
  std::string name;            // "MainThread"
  std::vector<Stack> samples;  // by time, at even distances
};

struct Profile {
  std::vector<Frame> frames;
  std::vector<Thread> threads;
};

Result<Profile> ReadSpeedscope(std::string_view text);

// The module of ".../site-packages/torch/optim/sgd.py"; empty for a user's file.
std::string ModuleOf(std::string_view file);

}  // namespace fullbore::stacks
