// `ctrlmesh completion`: scripts for shells, which ask `ctrlmesh __complete` for the words that may come next.
import { type Call, type Command, usageError } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";

const SCRIPTS: Readonly<Record<string, string>> = {
  // Not with compgen -W, which runs the commands that its words contain.
  bash: `_ctrlmesh() {
  local word typed="\${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=()
  while IFS= read -r word; do
    if [[ $word == "$typed"* ]]; then COMPREPLY+=("$word"); fi
  done <<< "$(ctrlmesh __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)"
}
complete -o default -F _ctrlmesh ctrlmesh
`,
  zsh: `#compdef ctrlmesh
_ctrlmesh() {
  local -a found
  found=(\${(f)"$(ctrlmesh __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  compadd -- $found || _files
}
compdef _ctrlmesh ctrlmesh
`,
  fish: `complete -c ctrlmesh -f -a '(ctrlmesh __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
};

export const COMPLETION: Command = {
  name: "completion",
  args: "SHELL",
  maxArgs: 1,
  summary: "the script by which bash, zsh or fish completes commands, flags and apps",
  flags: {},
  async run({ args: [shell = ""], output }: Call) {
    const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined;
    if (script === undefined) throw usageError(`name a shell: ${Object.keys(SCRIPTS).join(", ")}`);
    output.script(script);
    return EXIT.ok;
  },
};
