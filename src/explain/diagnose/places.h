// Places in source code as findings name them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "explain/diagnose/diagnosis.h"
#include "record/recording.h"

namespace fullbore::diagnose {

// The file and the line of "/home/u/train.py:57": where the loader was made.
Place PlaceOf(const std::string& where);

// Whether it is one to edit: not the script that an installer wrote to start a program (bin/torchrun). `text` is the
// line, empty where it is not known.
bool IsPlaceToEdit(const std::string& file, const std::string& text = "");

// "train.py:30"; "cell 4, line 7" of a notebook, whose hook calls the file "<cell 4>". As a sentence names it.
std::string NameOf(const Place& place);

// "train.py:30, :32, other.py:7": as a sentence names them.
std::string NamesOf(const std::vector<Place>& places);

// The module of a file that is a library's, "pandas.core.indexing": it is not there to be edited. Else the file.
std::string FileOrModule(const std::string& file);

// The places of those lines that `counts`, most samples first; each line once, with its part of `all` samples.
std::vector<Place> PlacesOf(const std::vector<record::HotLine>& lines,
                            const std::function<bool(const record::HotLine&)>& counts, double all);

}  // namespace fullbore::diagnose
