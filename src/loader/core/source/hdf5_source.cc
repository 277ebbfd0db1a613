// HDF5 files: the first dimension of each dataset is the samples. Several files follow one another.
#include <fmt/format.h>

#include <algorithm>

#include "loader/core/source/field_kinds.h"
#include "loader/core/source/hdf5_file.h"
#include "loader/core/source/sharded_source.h"

namespace fullbore::loader {

namespace {

constexpr size_t kAlignment = 8;

class Hdf5Source : public ShardedSource {
 public:
  using ShardedSource::ShardedSource;

  std::vector<std::unique_ptr<Hdf5File>> files;
  std::vector<std::vector<size_t>> datasets;  // of each file: which of its datasets each field is

  Result<void> Read(uint64_t id, RawSample& out) const override {
    const auto [file, row] = Find(id);
    thread_local std::vector<Hdf5File::RowPlace> places;
    places.clear();
    size_t at = 0;
    for (const size_t dataset : datasets[file]) {
      auto place = files[file]->ReadRow(dataset, row, out.storage, at);
      if (!place) return place.error();
      places.push_back(*place);
      at += (place->bytes + kAlignment - 1) / kAlignment * kAlignment;
    }
    out.fields.resize(places.size());
    for (size_t i = 0; i < places.size(); ++i) {
      out.fields[i].bytes = std::span(out.storage).subspan(places[i].begin, places[i].bytes);
      out.fields[i].integer = places[i].integer;
      if (source_fields[i].kind == SourceFieldKind::kText && !IsText(out.fields[i].bytes)) {
        return Error{ErrorCode::kCorrupt,
                     fmt::format("{}: '{}' is not valid UTF-8", NameOf(id), source_fields[i].name), ""};
      }
    }
    return {};
  }

  std::string NameOf(uint64_t id) const override {
    const auto [file, row] = Find(id);
    return fmt::format("{}: row {}", files[file]->file().path, row);
  }
};

std::string NamesOf(const Hdf5File& file) {
  std::string names;
  for (const Hdf5Dataset& dataset : file.datasets())
    names += fmt::format("{}{} ({} rows)", names.empty() ? "" : ", ", dataset.name, dataset.rows);
  return names.empty() ? "none" : names;
}

Error NoDataset(const Hdf5File& file, const std::string& name) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("'{}' has no dataset '{}' (it has: {})", file.file().path, name, NamesOf(file)), ""};
}

// The datasets to read from a file; if none are named, all in the first file that can be fields.
Result<std::vector<size_t>> ChooseDatasets(const Hdf5File& file, const std::vector<std::string>& wanted,
                                           MessageBox& messages) {
  std::vector<size_t> chosen;
  const auto& datasets = file.datasets();
  for (size_t i = 0; wanted.empty() && i < datasets.size(); ++i) {
    if (datasets[i].unusable.empty()) {
      chosen.push_back(i);
    } else {
      messages.Add(Message::Severity::kInfo,
                   fmt::format("the dataset '{}' is left out: {}", datasets[i].name, datasets[i].unusable));
    }
  }
  for (std::string name : wanted) {
    if (name.starts_with('/')) name.erase(0, 1);
    const auto found = std::find_if(datasets.begin(), datasets.end(),
                                    [&](const Hdf5Dataset& dataset) { return dataset.name == name; });
    if (found == datasets.end()) return NoDataset(file, name);
    if (!found->unusable.empty()) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("'{}': the dataset '{}' cannot be a field: {}", file.file().path, name,
                               found->unusable),
                   ""};
    }
    chosen.push_back(static_cast<size_t>(found - datasets.begin()));
  }
  if (chosen.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("'{}' has no dataset that could be a field (it has: {})", file.file().path,
                             NamesOf(file)),
                 ""};
  }
  for (const size_t index : chosen) {
    if (datasets[index].rows == datasets[chosen[0]].rows) continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the datasets of '{}' have different numbers of rows: {}", file.file().path,
                             NamesOf(file)),
                 "list those that belong together in fields"};
  }
  return chosen;
}

// Later files have the fields of the first.
Result<void> CheckSame(const std::vector<SourceField>& fields, const Hdf5File& file,
                       const std::vector<size_t>& chosen) {
  for (size_t i = 0; i < fields.size(); ++i) {
    const SourceField& field = file.datasets()[chosen[i]].field;
    if (field.kind == fields[i].kind && field.dtype == fields[i].dtype && field.shape == fields[i].shape)
      continue;
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("the dataset '{}' of '{}' has a different type or shape than in the files before",
                    field.name, file.file().path),
        ""};
  }
  return {};
}

}  // namespace

OpenedSource OpenHdf5(const Opening& opening) {
  auto source = std::make_unique<Hdf5Source>(opening.store);
  std::vector<std::string> wanted = opening.options.fields;
  for (const std::string& path : opening.paths) {
    auto stat = opening.store->Stat(path);
    if (!stat) return stat.error();
    auto file = Hdf5File::Open(opening.store, std::move(*stat));
    if (!file) return file.error();
    auto chosen = ChooseDatasets(**file, wanted, source->messages);
    if (!chosen) return chosen.error();
    const auto& datasets = (*file)->datasets();
    if (source->files.empty()) {
      wanted.clear();
      for (const size_t index : *chosen) {
        source->source_fields.push_back(datasets[index].field);
        wanted.push_back(datasets[index].name);
      }
    } else if (auto same = CheckSame(source->source_fields, **file, *chosen); !same) {
      return same.error();
    }
    source->AppendFile(datasets[chosen->front()].rows);
    source->datasets.push_back(std::move(*chosen));
    source->files.push_back(std::move(*file));
  }
  if (source->size() == 0)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the datasets of '{}' have no rows", opening.paths[0]), ""};
  return std::unique_ptr<Source>(std::move(source));
}

}  // namespace fullbore::loader
