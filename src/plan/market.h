// What can be had, and for how much: kinds of machines, as the file of --prices lists them (docs/plan.md). None is built
// in, and a price stands there with its source and date.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "explain/roofline/devices.h"

namespace fullbore::plan {

// Zero and empty: the file does not say.
struct Machine {
  std::string name;                          // "g4dn.xlarge"
  const roofline::Device* device = nullptr;  // never null
  int64_t gpus = 1;                          // devices of that kind in it
  double cores = 0;                          // as programs see them
  double threads_per_core = 0;               // 2: two of them are one core of the chip
  double memory_bytes = 0;                   // of the host
  double device_memory_bytes = 0;            // of one device; never 0: else as its data sheet says
  bool names_device_memory = false;          // the file says it
  double link_bytes_per_s = 0;               // between its devices, of each in one direction
  std::optional<double> per_hour;            // for the machine
  std::string source, date;                  // of the price
};

struct Offer {
  Machine machine;    // of as many devices as it is had with
  int64_t up_to = 1;  // it is also had with so many devices, as a multiple of itself
};

struct Market {
  std::string currency;  // "USD"; empty without a file
  std::vector<Offer> offers;
};

// The machines with so many of these devices, all of it multiplied where it is had so, the cheapest first: of those that
// cost more, only what has more cores, memory or a faster link than each before it. What has no price comes last.
std::vector<Machine> MachinesWith(const Market& market, const roofline::Device& device, int64_t gpus);

// Whether some machine of the file has this device.
bool Sells(const Market& market, const roofline::Device& device);

}  // namespace fullbore::plan
