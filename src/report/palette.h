// How each share looks, the same in the terminal and on the page: one label, one colour and one glyph each.
//
// The colours are the Okabe-Ito set (safe under the three common colour blindnesses) and blues for everything
// that is training itself: readers look for whatever is not blue.
#pragma once

#include <string_view>

#include "record/share.h"

namespace fullbore::report {

struct ShareLook {
  std::string_view name;     // record::Name: "data_wait"
  std::string_view label;    // "data", short enough for a legend in a terminal
  std::string_view meaning;  // one line, for the page
  std::string_view light;    // CSS colour on a light page
  std::string_view dark;     // and on a dark one
  int ansi;                  // the nearest of the terminal's 256 colours
  std::string_view glyph;    // in a bar without colours
  char ascii;                // and without Unicode
};

inline constexpr std::array<ShareLook, record::kShareCount> kShareLooks = {{
    {"compute", "compute", "a compute kernel runs on the device", "#0072b2", "#3b9be0", 32, "█", '#'},
    {"forward", "forward", "the training thread runs the model's forward pass", "#0072b2", "#3b9be0", 32, "█",
     '#'},
    {"backward", "backward", "the training thread runs the backward pass", "#56a8dc", "#7cc4f0", 74, "▓",
     '='},
    {"optimizer", "optimizer", "the training thread runs the optimizer", "#9ccbe8", "#b9def5", 117, "▒", '+'},
    {"data_wait", "data", "training waits for the data loader's next batch", "#e69f00", "#f0ad1e", 214, "░",
     '.'},
    {"copy_exposed", "copy", "a copy runs and nothing computes meanwhile", "#009e73", "#1fb58a", 36, "≡",
     '>'},
    {"h2d", "copy", "the training thread copies the batch to the device", "#009e73", "#1fb58a", 36, "≡", '>'},
    {"comm_exposed", "comm", "waiting for other ranks: a collective runs and nothing computes meanwhile",
     "#d55e00", "#ee7733", 166, "▞", '~'},
    {"sync", "sync", "the device idles because the host blocked in a synchronisation", "#cc79a7", "#dd90bb",
     175, "×", '!'},
    {"launch", "launch", "the device idles while the host prepares the next launch", "#7b4fa3", "#a57fd0", 97,
     "╌", '-'},
    {"host_other", "other", "the loop does something besides training: checkpoint, logging, validation",
     "#7a7a7a", "#9a9a9a", 245, "·", 'o'},
    {"gap", "gap", "the device idles between kernels that were already queued", "#b8b8b8", "#666a70", 250,
     "˙", '\''},
}};

// The parts of a device's memory (diagnose::MemoryPart), what the training itself asked for in blue.
inline constexpr std::array<ShareLook, 8> kMemoryLooks = {{
    {"weights", "weights", "parameters and buffers of the models", "#0072b2", "#3b9be0", 32, "█", '#'},
    {"gradients", "gradients", "of the parameters, after a step", "#56a8dc", "#7cc4f0", 74, "▓", '='},
    {"states", "optimizer states", "what the optimizers keep of each parameter", "#9ccbe8", "#b9def5", 117,
     "▒", '+'},
    {"activations", "activations",
     "the rest of what was in tensors at the peak: what the backward pass needs, and temporaries", "#e69f00",
     "#f0ad1e", 214, "░", '.'},
    {"fragments", "fragments", "held by PyTorch beyond that peak: free, in pieces, for requests to come",
     "#cc79a7", "#dd90bb", 175, "×", '!'},
    {"outside", "outside of PyTorch",
     "used on the device and not by PyTorch's allocator: contexts, libraries", "#7a7a7a", "#9a9a9a", 245, "≡",
     'o'},
    {"others", "other programs", "of processes that are not of this command", "#d55e00", "#ee7733", 166, "▞",
     '~'},
    {"free", "free", "asked for by nobody", "#b8b8b8", "#666a70", 250, "·", '-'},
}};

// The look of a share by its name; that of host_other for an unknown name.
const ShareLook& LookOf(std::string_view share_name);

}  // namespace fullbore::report
