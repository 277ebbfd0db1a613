# Completion of fullbore for fish: fullbore itself says what may come next.
#   fullbore completion fish | source       # in ~/.config/fish/config.fish
function __fullbore_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct | string unescape)
    set -l program $words[1]
    set -e words[1]
    for line in ($program __complete $words "$typed" 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path "$typed"
            case ':directories'
                __fish_complete_directories "$typed"
            case '*'
                echo $line
        end
    end
end

# What follows -- is a command, and is completed as it always is.
function __fullbore_complete_command
    set -l words (commandline -opc)
    set -l separator (contains -i -- -- $words)
    set -l command (string escape -- $words[(math $separator + 1)..-1])
    complete --do-complete (string join ' ' -- $command (commandline -ct))
end

complete -c fullbore -f -n 'not contains -- -- (commandline -opc)' -a '(__fullbore_complete)'
complete -c fullbore -f -n 'contains -- -- (commandline -opc)' -a '(__fullbore_complete_command)'
