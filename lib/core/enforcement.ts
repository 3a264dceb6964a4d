/** Whether limits are enforced at all in this process. Only `nestjs-distlimit/testing` turns it off. */
let suspensions = 0;

export function enforcementSuspended(): boolean {
  return suspensions > 0;
}

/** Lets everything pass, uncounted, until the returned function is called. Calls nest. */
export function suspendEnforcement(): () => void {
  let active = true;
  suspensions++;
  return () => {
    if (active) suspensions--;
    active = false;
  };
}
