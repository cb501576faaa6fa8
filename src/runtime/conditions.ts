// The transition times of status conditions (metav1.Condition). Pure.

interface Dated {
  readonly status: string;
  readonly lastTransitionTime?: string | undefined;
}

/**
 * The condition with its lastTransitionTime: that of the previous condition of its type if the status is equal,
 * otherwise `now`.
 * @param now in RFC 3339
 */
export function withTransitionTime<C extends { readonly status: string }>(
  condition: C,
  previous: Dated | undefined,
  now: string,
): C & { readonly lastTransitionTime: string } {
  const isSame = previous?.status === condition.status;
  return { ...condition, lastTransitionTime: (isSame ? previous.lastTransitionTime : undefined) ?? now };
}
