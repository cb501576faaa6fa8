// Finds what re2js matches slowly: word boundaries, which switch its fast automaton off, and counted
// repetitions of what may be empty, such as (a?){200}, which give it thousands of states. Pure. Takes one
// pass.

/** Lazy repetitions have a mark after them. The last alternative is any other character. */
const TOKEN =
  /(?<quoted>\\Q[\s\S]*?(?:\\E|$))|(?<boundary>\\[bB])|(?<anchor>\\[Az]|[\^$])|(?<flags>\(\?[A-Za-z-]*\))|\\[pPx]\{[^}]*\}|\\[pP]?[\s\S]|\[\^?\]?(?:\[:\^?\w+:\]|\\[\s\S]|[^\]\\])*\]|(?<counted>\{(?<least>\d+)(?<to>,(?<most>\d*))?\})\??|(?<repeated>[*+?])\??|(?<open>\((?:\?(?:P?<[^>]*>|[A-Za-z-]*:))?)|(?<close>\))|(?<or>\|)|[\s\S]/gu;

interface Group {
  /** An alternative before the current one may be empty. */
  mayBeEmpty: boolean;
  /** The part of the current alternative before `last` may be empty. */
  isEmptySoFar: boolean;
  /** The last part may be empty: a repetition applies to it. */
  isLastEmpty: boolean;
}

const newGroup = (): Group => ({ mayBeEmpty: false, isEmptySoFar: true, isLastEmpty: true });

/** A text for the author of the expression, which must compile; undefined if nothing is slow. */
export function slowPart(pattern: string): string | undefined {
  const shape = shapeOf(pattern);
  if (shape.boundary !== undefined) return `${shape.boundary}, a word boundary`;
  return shape.counted && `${shape.counted} after a part that may be empty`;
}

/** For tests: `slowPart` rests on this answer. */
export function mayBeEmpty(pattern: string): boolean {
  return shapeOf(pattern).mayBeEmpty;
}

function shapeOf(pattern: string) {
  const outer: Group[] = [];
  let group = newGroup();
  let boundary: string | undefined;
  let counted: string | undefined;
  const append = (isEmpty: boolean) => {
    group.isEmptySoFar &&= group.isLastEmpty;
    group.isLastEmpty = isEmpty;
  };
  const endAlternative = () => {
    group.mayBeEmpty ||= group.isEmptySoFar && group.isLastEmpty;
    group.isEmptySoFar = group.isLastEmpty = true;
  };
  for (const { 0: token, groups: found = {} } of pattern.matchAll(TOKEN)) {
    if (found.counted !== undefined) {
      const most = found.to === undefined ? found.least : found.most;
      if (group.isLastEmpty && Number(most || Number.POSITIVE_INFINITY) > 1) counted ??= token;
      group.isLastEmpty ||= Number(found.least) === 0;
    } else if (found.repeated !== undefined) {
      group.isLastEmpty ||= found.repeated !== "+";
    } else if (found.open !== undefined) {
      outer.push(group);
      group = newGroup();
    } else if (found.close !== undefined) {
      endAlternative();
      const isEmpty = group.mayBeEmpty;
      group = outer.pop() ?? newGroup();
      append(isEmpty);
    } else if (found.or !== undefined) {
      endAlternative();
    } else {
      boundary ??= found.boundary;
      append((found.boundary ?? found.anchor ?? found.flags) !== undefined || token === "\\Q" || token === "\\Q\\E");
    }
  }
  endAlternative();
  return { mayBeEmpty: group.mayBeEmpty, boundary, counted };
}
