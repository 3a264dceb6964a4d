/** `$${` for what is no variable; `${NAME}`; `${NAME:-default}`. */
const VARIABLE = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

/**
 * Puts the values of environment variables in their places. One that is empty counts as not set, as in a shell.
 * @param missing is called for a variable that is not set and has no default
 */
export function withVariables(
  text: string,
  environment: NodeJS.ProcessEnv,
  missing: (name: string) => void,
): string {
  return text.replace(VARIABLE, (found, name: string | undefined, otherwise: string | undefined) => {
    if (name === undefined) return found.slice(1);
    const value = environment[name];
    if (value !== undefined && value !== '') return value;
    if (otherwise === undefined) missing(name);
    return otherwise ?? '';
  });
}
