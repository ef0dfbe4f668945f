/**
 * Finds programs that tests run as servers, and installs what is missing from Debian's packages where this machine
 * allows it. Test files and whole runs may ask at once: the installation waits for a lock, and looks again behind it.
 */
import { spawn } from "node:child_process"
import { accessSync, constants } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"

/** Null where `program` is not found. The directories named here go before those of PATH. */
export const find = (program: string, directories: ReadonlyArray<string> = []): string | null => {
  const path = (process.env["PATH"] ?? "").split(delimiter)
  return [...directories, ...path].map((directory) => join(directory, program)).find(isExecutable) ?? null
}

/** Fails where the program is missing and can't be installed, and says why. */
export const installed = async (
  program: string,
  from: { readonly debianPackage: string; readonly directories?: ReadonlyArray<string> }
): Promise<string> => {
  const there = find(program, from.directories)
  if (there !== null) return there
  const needed = `Tests need ${program}, which is not on PATH`
  if (process.getuid?.() !== 0 || find("apt-get") === null) {
    throw new Error(`${needed}: install it (Debian: apt-get install ${from.debianPackage})`)
  }
  const problem = await install(from.debianPackage)
  const found = find(program, from.directories)
  if (found === null) throw new Error(`${needed}, and apt-get did not install it:\n${problem}`)
  return found
}

/** Its output, for the case that the program is still missing afterwards. */
const install = async (debianPackage: string): Promise<string> => {
  const steps = [
    `dpkg-query -W -f '\${Status}' ${debianPackage} 2>/dev/null | grep -q 'ok installed' && exit 0`,
    // A mirror that fails to answer once is asked again; another apt on this machine is waited for.
    "export DEBIAN_FRONTEND=noninteractive",
    "apt='apt-get -y -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300'",
    "for try in 1 2 3; do",
    `  $apt update && $apt install --no-install-recommends ${debianPackage} && exit 0`,
    "  sleep $try",
    "done; exit 1"
  ]
  const lock = join(tmpdir(), "posthaste-test-install.lock")
  const child = spawn("flock", [lock, "sh", "-c", steps.join("\n")], { stdio: ["ignore", "pipe", "pipe"] })
  let output = ""
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += String(chunk)))
  const ended = await new Promise<string>((resolve) => {
    child.on("error", (error) => resolve(error.message))
    child.on("close", (code) => resolve(`apt-get ended with ${code}`))
  })
  return `${output}\n${ended}`
}

const isExecutable = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}
