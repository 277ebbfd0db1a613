#include "measure/probe/proc/net_probe.h"

#include <algorithm>
#include <filesystem>

#include "base/text.h"

namespace fullbore::probe {

namespace {

constexpr size_t kMaxInterfaces = 16;
constexpr size_t kMaxRdmaPorts = 32;
constexpr double kRdmaWordBytes =
    4;  // port_*_data count in 4-byte words (InfiniBand specification, PortCounters)

// The far ends and bridges of containers and virtual machines: their bytes also pass a real interface.
bool IsInner(std::string_view interface) {
  for (const std::string_view prefix : {"veth", "docker", "br-", "virbr", "cali", "cni", "flannel", "ifb"}) {
    if (interface.starts_with(prefix)) return true;
  }
  return interface == "lo";
}

std::vector<std::filesystem::path> SortedEntries(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> entries;
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    entries.push_back(at->path());
  }
  std::ranges::sort(entries);
  return entries;
}

}  // namespace

NetProbe::NetProbe(const Machine& machine) : net_dev_(machine.root + "/proc/net/dev") {
  FindRdmaPorts(machine.root + "/sys/class/infiniband");
}

void NetProbe::FindRdmaPorts(const std::string& directory) {
  for (const auto& device : SortedEntries(directory)) {
    for (const auto& port : SortedEntries(device / "ports")) {
      if (rdma_ports_.size() == kMaxRdmaPorts) return;
      const record::Labels labels = {{"port", device.filename().string() + ":" + port.filename().string()}};
      const std::string counters = (port / "counters").string();
      rdma_ports_.push_back({TextFile(counters + "/port_rcv_data"), TextFile(counters + "/port_xmit_data"),
                             Counter(), Counter(), KeyOf(Metric::kRdmaReceive, labels),
                             KeyOf(Metric::kRdmaSend, labels)});
    }
  }
}

void NetProbe::Sample(int64_t t_ns, Sink& sink) {
  ReadInterfaces(t_ns, sink);
  ReadRdmaPorts(t_ns, sink);
}

void NetProbe::ReadInterfaces(int64_t t_ns, Sink& sink) {
  const auto text = net_dev_.Read();
  if (!text) return;
  LineCursor lines(*text);
  for (std::string_view line; lines.Next(line);) {
    const size_t colon = line.rfind(':');  // the name itself may hold one ("eth0:1"), the figures do not
    if (colon == std::string_view::npos) continue;  // the two lines of headings
    const std::string_view name = Trim(line.substr(0, colon));
    if (name.empty() || IsInner(name)) continue;
    // Receive: bytes packets errs drop fifo frame compressed multicast; send: bytes packets errs drop.
    uint64_t field[12];
    WordCursor words(line.substr(colon + 1));
    const bool whole = std::ranges::all_of(field, [&words](uint64_t& value) {
      const auto count = words.NextCount();
      value = count.value_or(0);
      return count.has_value();
    });
    if (!whole || (field[0] == 0 && field[8] == 0)) continue;
    auto found = interfaces_.find(name);
    if (found == interfaces_.end()) {
      if (interfaces_.size() == kMaxInterfaces) continue;
      const record::Labels labels = {{"interface", std::string(name)}};
      found =
          interfaces_
              .emplace(name, Interface{Counter(), Counter(), Counter(), KeyOf(Metric::kNetReceive, labels),
                                       KeyOf(Metric::kNetSend, labels), KeyOf(Metric::kNetDrops, labels)})
              .first;
    }
    Interface& interface = found->second;
    const auto rate = [&](Counter& counter, uint64_t value, const record::SeriesKey& key) {
      if (const auto per_second = counter.RatePerSecond(t_ns, value)) sink.Read(key, t_ns, *per_second);
    };
    rate(interface.received, field[0], interface.receive);
    rate(interface.sent, field[8], interface.send);
    rate(interface.dropped, field[3] + field[11], interface.drops);
  }
}

void NetProbe::ReadRdmaPorts(int64_t t_ns, Sink& sink) {
  const auto rate = [&](TextFile& file, Counter& counter, const record::SeriesKey& key) {
    const auto text = file.Read();
    if (!text) return;
    const auto words = WordCursor(*text).NextCount();
    if (!words) return;
    if (const auto per_second = counter.RatePerSecond(t_ns, *words)) {
      sink.Read(key, t_ns, *per_second * kRdmaWordBytes);
    }
  };
  for (RdmaPort& port : rdma_ports_) {
    rate(port.received, port.received_words, port.receive);
    rate(port.sent, port.sent_words, port.send);
  }
}

}  // namespace fullbore::probe
