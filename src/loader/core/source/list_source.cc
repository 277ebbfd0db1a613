// Samples that a list file names, relative to its own directory, in its order.
//
// Columns: a header line names them; without one they are image, label and column3, column4...
// The image column is the one called image, path, file..., else the first; the label column the one called
// label, class..., else the second. If the first file is a .npy, all must be. Labels that are all numbers are
// used as they are; texts are numbered in sorted order, and class_names() has them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "base/text.h"
#include "loader/core/source/container.h"
#include "loader/core/source/file_table.h"
#include "loader/core/source/list_file.h"
#include "loader/core/source/paths.h"

namespace fullbore::loader {

namespace {

constexpr std::array<std::string_view, 12> kPathNames = {"image",     "path",     "file",       "filename",
                                                         "filepath",  "img",      "image_path", "file_path",
                                                         "file_name", "img_path", "image_file", "images"};
constexpr std::array<std::string_view, 8> kLabelNames = {"label",    "class",    "target", "category",
                                                         "class_id", "label_id", "y",      "labels"};

template <size_t N>
bool IsOneOf(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), LowerCase(name)) != names.end();
}

enum class Role { kImage, kLabel, kText };

struct Column {
  std::string name;  // as the field is called
  Role role = Role::kText;
  size_t index = 0;  // in the rows
};

// The labels of all rows, until it is known whether they are numbers.
struct Labels {
  std::vector<uint32_t> number_of_row;  // index into the texts, which are in order of first appearance
  std::map<std::string, uint32_t, std::less<>> texts;

  void Add(const std::string& text) {
    const auto next = static_cast<uint32_t>(texts.size());
    number_of_row.push_back(texts.try_emplace(text, next).first->second);
  }
};

// The files that a list names: images, or arrays.
bool IsFile(SourceFieldKind kind) { return kind == SourceFieldKind::kImage || kind == SourceFieldKind::kNpy; }

class ListSource : public Source {
 public:
  FileTable files;
  std::vector<int64_t> labels;
  std::vector<TextColumn> texts;  // one column per text field, in field order
  std::vector<std::string> classes;
  std::vector<SourceField> source_fields;
  std::shared_ptr<Store> store;

  uint64_t size() const override { return files.size(); }
  const std::vector<SourceField>& fields() const override { return source_fields; }
  const std::vector<std::string>& class_names() const override { return classes; }

  Result<void> Read(uint64_t id, RawSample& out) const override {
    size_t bytes = 0;
    if (has_file_) {
      thread_local std::string path;
      files.PathOf(id, path);
      auto read = store->ReadWhole(path, out.storage);
      if (!read) return read.error();
      bytes = *read;
    }
    size_t end = bytes;
    for (const TextColumn& column : texts) end += column[id].size();
    const std::span<uint8_t> room = RoomIn(out.storage, end);
    out.fields.resize(source_fields.size());
    size_t text = 0, at = bytes;
    for (size_t i = 0; i < source_fields.size(); ++i) {
      FieldValue& value = out.fields[i];
      value = {};
      if (IsFile(source_fields[i].kind)) value.bytes = room.first(bytes);
      if (source_fields[i].kind == SourceFieldKind::kInteger) value.integer = labels[id];
      if (source_fields[i].kind != SourceFieldKind::kText) continue;
      const std::string_view cell = texts[text++][id];
      std::copy(cell.begin(), cell.end(), room.begin() + static_cast<std::ptrdiff_t>(at));
      value.bytes = room.subspan(at, cell.size());
      at += cell.size();
    }
    return {};
  }

  std::string NameOf(uint64_t id) const override {
    std::string path;
    files.PathOf(id, path);
    return path;
  }
  void Cancel() override { store->Cancel(); }
  std::vector<Message> TakeMessages() override { return store->TakeMessages(); }

  void Finish() {
    files.Compact();
    for (TextColumn& column : texts) column.Compact();
    has_file_ = std::any_of(source_fields.begin(), source_fields.end(),
                            [](const auto& field) { return IsFile(field.kind); });
  }

 private:
  bool has_file_ = false;
};

class ListReader {
 public:
  explicit ListReader(const Opening& opening)
      : wanted_(opening.options.fields), lists_(*opening.store), source_(std::make_unique<ListSource>()) {
    if (wanted_.empty()) wanted_ = {"image", "label"};
  }

  Result<void> Read(const std::string& path) {
    std::vector<uint8_t> bytes;
    auto size = lists_.ReadWhole(path, bytes);
    if (!size) return size.error();
    path_ = path;
    columns_.clear();
    source_->files.BeginDirectory(std::string(DirectoryOf(path)), 0);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), *size);
    syntax_ = ListSyntaxOf(path);
    auto parsed = ParseList(text, syntax_, [this](uint64_t line, std::span<const std::string> cells) {
      return AddRow(line, cells);
    });
    if (!parsed) {
      Error error = parsed.error();
      error.text = fmt::format("'{}', {}", path, error.text);
      return error;
    }
    return {};
  }

  OpenedSource Finish(const SourceOptions& options) {
    if (source_->files.size() == 0)
      return Error{ErrorCode::kInvalidArgument, fmt::format("'{}' names no samples", path_), ""};
    std::string first;
    source_->files.PathOf(0, first);
    if (LowerCase(first).ends_with(".npy")) {
      for (SourceField& field : source_->source_fields) {
        if (field.kind == SourceFieldKind::kImage) field.kind = SourceFieldKind::kNpy;
      }
    }
    auto store = OpenStore(first, options);  // a local list may name remote files
    if (!store) return store.error();
    source_->store = std::move(*store);
    if (auto numbered = NumberLabels(); !numbered) return numbered.error();
    source_->Finish();
    return std::unique_ptr<Source>(std::move(source_));
  }

 private:
  bool Wants(std::string_view name) const {
    return std::find(wanted_.begin(), wanted_.end(), name) != wanted_.end();
  }

  bool IsHeader(std::span<const std::string> cells) const {
    if (syntax_ == ListSyntax::kPathLabel) return false;
    return std::any_of(cells.begin(), cells.end(), [this](const std::string& cell) {
      return IsOneOf(cell, kPathNames) || IsOneOf(cell, kLabelNames) || Wants(cell);
    });
  }

  static size_t IndexOf(std::span<const std::string> names, bool (*is)(std::string_view), size_t otherwise) {
    const auto found =
        std::find_if(names.begin(), names.end(), [&](const std::string& name) { return is(name); });
    return found == names.end() ? otherwise : static_cast<size_t>(found - names.begin());
  }

  // Which columns the fields are. Called with the first row; returns whether that was the header.
  Result<bool> ChooseColumns(std::span<const std::string> cells) {
    const bool header = IsHeader(cells);
    std::vector<std::string> names(cells.begin(), cells.end());
    if (!header) {
      for (size_t i = 0; i < names.size(); ++i)
        names[i] = i == 0 ? "image" : i == 1 ? "label" : fmt::format("column{}", i + 1);
    }
    row_cells_ = names.size();
    image_ = IndexOf(
        names, [](std::string_view name) { return IsOneOf(name, kPathNames); }, 0);
    const size_t label = IndexOf(
        names, [](std::string_view name) { return IsOneOf(name, kLabelNames); }, image_ == 0 ? 1 : 0);
    for (const std::string& field : wanted_) {
      const auto named = std::find(names.begin(), names.end(), field);
      Column column{field, Role::kText, static_cast<size_t>(named - names.begin())};
      if (field == "image" || column.index == image_) {
        column = {field, Role::kImage, image_};
      } else if (field == "label" || (column.index == label && IsOneOf(field, kLabelNames))) {
        column = {field, Role::kLabel, label};
      }
      if (column.index >= names.size()) return NoColumn(field, names);
      columns_.push_back(column);
    }
    if (source_->source_fields.empty()) DeclareFields();
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (KindOf(columns_[i].role) != source_->source_fields[i].kind)
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("'{}' is a different kind of column than in the lists before", wanted_[i]),
                     ""};
    }
    return header;
  }

  static Error NoColumn(const std::string& field, const std::vector<std::string>& names) {
    std::string there;
    for (const std::string& name : names) there += (there.empty() ? "" : ", ") + name;
    return {ErrorCode::kInvalidArgument, fmt::format("there is no {} (columns: {})", field, there),
            field == "label" ? "for images without labels ask for fields = [\"image\"]" : ""};
  }

  static SourceFieldKind KindOf(Role role) {
    if (role == Role::kImage) return SourceFieldKind::kImage;
    return role == Role::kLabel ? SourceFieldKind::kInteger : SourceFieldKind::kText;
  }

  void DeclareFields() {
    for (const Column& column : columns_) {
      source_->source_fields.push_back({column.name, KindOf(column.role), {}, {}});
      if (column.role == Role::kText) source_->texts.emplace_back();
    }
  }

  Result<void> AddRow(uint64_t line, std::span<const std::string> cells) {
    if (columns_.empty()) {
      auto header = ChooseColumns(cells);
      if (!header) return AtLine(line, header.error());
      if (*header) return {};
    }
    if (cells.size() < row_cells_ && NeedsCell(cells.size())) {
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("line {}: {} columns, but the first line has {}", line, cells.size(), row_cells_), ""};
    }
    if (cells[image_].empty())
      return Error{ErrorCode::kInvalidArgument, fmt::format("line {}: no path", line), ""};
    source_->files.Add(PathOf(cells));
    size_t text = 0;
    for (const Column& column : columns_) {
      if (column.role == Role::kLabel) labels_.Add(cells[column.index]);
      if (column.role == Role::kText) source_->texts[text++].Add(cells[column.index]);
    }
    return {};
  }

  bool NeedsCell(size_t behind) const {
    return image_ >= behind || std::any_of(columns_.begin(), columns_.end(),
                                           [&](const Column& column) { return column.index >= behind; });
  }

  // A list of paths only: what looks like a label is part of a path with blanks.
  std::string PathOf(std::span<const std::string> cells) const {
    const bool alone = syntax_ == ListSyntax::kPathLabel && cells.size() == 2 && labels_wanted() == 0;
    return alone && !HasImageExtension(cells[0]) ? cells[0] + " " + cells[1] : cells[image_];
  }

  size_t labels_wanted() const {
    return static_cast<size_t>(std::count_if(
        columns_.begin(), columns_.end(), [](const Column& column) { return column.role == Role::kLabel; }));
  }

  static Error AtLine(uint64_t line, Error error) {
    error.text = fmt::format("line {}: {}", line, error.text);
    return error;
  }

  Result<void> NumberLabels() {
    if (labels_.texts.empty()) return {};
    if (labels_wanted() > 1) return Error{ErrorCode::kInvalidArgument, "fields lists the label twice", ""};
    std::vector<int64_t> number(labels_.texts.size());
    const bool numbers = std::all_of(labels_.texts.begin(), labels_.texts.end(),
                                     [](const auto& text) { return ParseInt(text.first).has_value(); });
    for (const auto& [text, index] : labels_.texts) {
      number[index] = numbers ? *ParseInt(text) : static_cast<int64_t>(source_->classes.size());
      if (!numbers) source_->classes.push_back(text);
    }
    for (const uint32_t index : labels_.number_of_row) source_->labels.push_back(number[index]);
    return {};
  }

  std::vector<std::string> wanted_;
  Store& lists_;
  std::unique_ptr<ListSource> source_;
  Labels labels_;
  // Of the list being read:
  std::string path_;
  ListSyntax syntax_ = ListSyntax::kPathLabel;
  std::vector<Column> columns_;
  size_t image_ = 0, row_cells_ = 0;
};

}  // namespace

OpenedSource OpenList(const Opening& opening) {
  ListReader reader(opening);
  for (const std::string& path : opening.paths) {
    if (auto read = reader.Read(path); !read) return read.error();
  }
  return reader.Finish(opening.options);
}

}  // namespace fullbore::loader
