// The CPU time of the calling thread. Other programs on the machine change it far less than the time on the clock, since they share only caches
// and cores. So tests bound by it what code costs.

/** Milliseconds since the thread began. */
export function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** The most CPU time in milliseconds that one turn of the event loop took while `work` ran. */
export async function longestTurnMs(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let lastMs = threadCpuMs();
  const look = () => {
    const nowMs = threadCpuMs();
    longest = Math.max(longest, nowMs - lastMs);
    lastMs = nowMs;
  };
  const timer = setInterval(look, 1); // a timer that is due runs once in each turn
  try {
    await work();
  } finally {
    clearInterval(timer);
  }
  look();
  return longest;
}
