// A directory of class directories, with the order and labels of torchvision's ImageFolder: classes sorted by
// name; within a class, directories sorted by their whole path, and files by name within each.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "loader/core/source/container.h"
#include "loader/core/source/file_table.h"
#include "loader/core/source/paths.h"

namespace fullbore::loader {

namespace {

constexpr char kImage[] = "image";
constexpr char kLabel[] = "label";
constexpr char kExtensions[] = ".jpg, .jpeg, .png, .ppm, .bmp, .pgm, .tif, .tiff, .webp";

class FolderSource : public Source {
 public:
  FolderSource(std::shared_ptr<Store> store, FileTable files, std::vector<std::string> classes,
               std::vector<SourceField> fields)
      : store_(std::move(store)),
        files_(std::move(files)),
        classes_(std::move(classes)),
        fields_(std::move(fields)) {}

  uint64_t size() const override { return files_.size(); }
  const std::vector<SourceField>& fields() const override { return fields_; }
  const std::vector<std::string>& class_names() const override { return classes_; }

  Result<void> Read(uint64_t id, RawSample& out) const override {
    thread_local std::string path;
    files_.PathOf(id, path);
    auto bytes = store_->ReadWhole(path, out.storage);
    if (!bytes) return bytes.error();
    out.fields.resize(fields_.size());
    for (size_t i = 0; i < fields_.size(); ++i) {
      const bool image = fields_[i].kind == SourceFieldKind::kImage;
      out.fields[i].bytes = std::span(out.storage).first(image ? *bytes : 0);
      out.fields[i].integer = image ? 0 : files_.DirectoryOf(id).label;
    }
    return {};
  }

  std::string NameOf(uint64_t id) const override {
    std::string path;
    files_.PathOf(id, path);
    return path;
  }
  void Cancel() override { store_->Cancel(); }
  std::vector<Message> TakeMessages() override { return store_->TakeMessages(); }

 private:
  const std::shared_ptr<Store> store_;
  const FileTable files_;
  const std::vector<std::string> classes_;
  const std::vector<SourceField> fields_;
};

Result<std::vector<SourceField>> FieldsOf(const std::vector<std::string>& names) {
  std::vector<SourceField> fields;
  const std::vector<std::string> defaults = {kImage, kLabel};
  for (const std::string& name : names.empty() ? defaults : names) {
    if (name != kImage && name != kLabel) {
      return Error{ErrorCode::kInvalidArgument, fmt::format("an image folder has no field '{}'", name),
                   "it has the fields image and label"};
    }
    fields.push_back({name, name == kImage ? SourceFieldKind::kImage : SourceFieldKind::kInteger, {}, {}});
  }
  return fields;
}

// What is below the root, as it is found. Keyed by directory, because a listing by prefix has files of a
// directory both before and after those of its subdirectories.
struct Listing {
  std::map<std::string, TextColumn, std::less<>> images;  // by directory, "" for the root
  std::vector<std::string> classes;                       // sorted
  uint64_t others = 0;                                    // files that are not images by their name

  bool HasImages(std::string_view class_name) const {
    const auto inside = [&](std::string_view directory) {
      return directory.starts_with(class_name) &&
             (directory.size() == class_name.size() || directory[class_name.size()] == '/');
    };
    // Keys that begin with the class's name are neighbours ("a", "a-b", "a/b").
    for (auto at = images.lower_bound(class_name); at != images.end(); ++at) {
      if (!std::string_view(at->first).starts_with(class_name)) return false;
      if (inside(at->first) && at->second.size() > 0) return true;
    }
    return false;
  }
};

Result<Listing> ListImages(Store& store, const std::string& root) {
  Listing listing;
  auto current = listing.images.end();
  auto walked = store.Walk(root, [&](std::string_view directory, std::string_view name) {
    if (current == listing.images.end() || current->first != directory)
      current = listing.images.try_emplace(std::string(directory)).first;
    if (name.empty()) return;
    if (HasImageExtension(name)) {
      current->second.Add(name);
    } else {
      ++listing.others;
    }
  });
  if (!walked) return walked.error();
  for (const auto& [directory, names] : listing.images) {
    const std::string top = directory.substr(0, directory.find('/'));
    if (!top.empty()) listing.classes.push_back(top);
  }
  std::sort(listing.classes.begin(), listing.classes.end());
  listing.classes.erase(std::unique(listing.classes.begin(), listing.classes.end()), listing.classes.end());
  return listing;
}

void AddSorted(const TextColumn& names, FileTable& files) {
  std::vector<uint32_t> order(names.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return names[a] < names[b]; });
  for (const uint32_t index : order) files.Add(names[index]);
}

// Moves the listing into sample order; frees each directory's names as they are copied.
FileTable InOrder(const std::string& root, Listing& listing, bool with_root) {
  FileTable files;
  const auto add = [&](const std::string& directory, TextColumn& names, int64_t label) {
    if (names.size() == 0) return;
    files.BeginDirectory(JoinPath(root, directory), label);
    AddSorted(names, files);
    names = TextColumn();
  };
  if (with_root) {
    files.BeginDirectory(root, 0);
    AddSorted(listing.images[""], files);
  }
  for (size_t label = 0; label < listing.classes.size(); ++label) {
    const std::string& name = listing.classes[label];
    for (auto at = listing.images.lower_bound(name); at != listing.images.end(); ++at) {
      if (!at->first.starts_with(name)) break;
      if (at->first.size() == name.size() || at->first[name.size()] == '/')
        add(at->first, at->second, static_cast<int64_t>(label));
    }
  }
  files.Compact();
  return files;
}

Error NoImages(const std::string& root, const Listing& listing) {
  Error error{ErrorCode::kInvalidArgument,
              fmt::format("no images below '{}' (looked for {})", root, kExtensions), ""};
  if (listing.others > 0) {
    error.text += fmt::format("; other files: {}", listing.others);
    error.hint = "give a directory of class directories with images in them: root/cat/1.jpg";
  } else if (listing.images.size() <= 1) {
    error.hint = "the directory is empty: check the path";
  } else {
    error.hint = "all its directories are empty: check the path";
  }
  return error;
}

Error NoClasses(const std::string& root, uint64_t images) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("'{}' has {} images but no class directories to give the labels", root, images),
          fmt::format("did you mean the directory above, '{}'? For images without labels ask for fields = "
                      "[\"image\"]",
                      DirectoryOf(root).empty() ? ".." : DirectoryOf(root))};
}

// torchvision refuses them too: an empty class, often a
// forgotten ".ipynb_checkpoints", shifts all labels after it.
std::optional<Error> EmptyClasses(const std::string& root, const Listing& listing) {
  std::string empty;
  for (const std::string& name : listing.classes) {
    if (!listing.HasImages(name)) empty += (empty.empty() ? "'" : ", '") + name + "'";
  }
  if (empty.empty()) return std::nullopt;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("no images in the class directories {} of '{}'", empty, root),
               "remove them: an empty class would shift the labels of the classes after it"};
}

// A prefix of remote keys ends with a slash, because "photos" would list "photos2/" too.
std::string AsRoot(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return IsRemote(path) ? path + "/" : path;
}

}  // namespace

OpenedSource OpenFolder(const Opening& opening) {
  if (opening.paths.size() != 1) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} directories were given, but an image folder is a single one", opening.paths.size()),
        "give their parent directory"};
  }
  auto fields = FieldsOf(opening.options.fields);
  if (!fields) return fields.error();
  const bool labelled = std::any_of(fields->begin(), fields->end(),
                                    [](const SourceField& field) { return field.name == kLabel; });
  const std::string root = AsRoot(opening.paths[0]);
  auto listing = ListImages(*opening.store, root);
  if (!listing) return listing.error();
  const uint64_t beside = listing->images[""].size();
  if (labelled) {
    const bool any = std::any_of(listing->classes.begin(), listing->classes.end(),
                                 [&](const std::string& name) { return listing->HasImages(name); });
    if (!any && beside > 0) return NoClasses(root, beside);
    if (!any) return NoImages(root, *listing);
    if (auto empty = EmptyClasses(root, *listing)) return *empty;
  }
  FileTable files = InOrder(root, *listing, !labelled);
  if (files.size() == 0) return NoImages(root, *listing);
  std::vector<std::string> classes = labelled ? std::move(listing->classes) : std::vector<std::string>();
  return std::unique_ptr<Source>(std::make_unique<FolderSource>(opening.store, std::move(files),
                                                                std::move(classes), std::move(*fields)));
}

}  // namespace fullbore::loader
