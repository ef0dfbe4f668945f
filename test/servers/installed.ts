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

interface Source {
  readonly debianPackage: string
  /** These go before those of PATH. */
  readonly directories?: ReadonlyArray<string>
}

/** What tests run that does not come with npm. */
const programs = {
  epmd: { debianPackage: "erlang-base" },
  // Debian's own commands change the user and forget the environment: the ones that they call come first.
  "rabbitmq-server": { debianPackage: "rabbitmq-server", directories: ["/usr/lib/rabbitmq/bin"] },
  prometheus: { debianPackage: "prometheus" },
  promtool: { debianPackage: "prometheus" },
  pgbouncer: { debianPackage: "pgbouncer", directories: ["/usr/sbin"] },
  pg_basebackup: {
    debianPackage: "postgresql",
    directories: [21, 20, 19, 18, 17, 16, 15, 14].map((version) => `/usr/lib/postgresql/${version}/bin`)
  }
} satisfies Readonly<Record<string, Source>>

/** Fails where the program is missing and can't be installed, and says why. */
export const installed = async (program: keyof typeof programs): Promise<string> => {
  const from: Source = programs[program]
  const there = find(program, from.directories)
  if (there !== null) return there
  const needed = `Tests need ${program}, which is not on PATH`
  if (process.getuid?.() !== 0 || find("apt-get") === null) {
    throw new Error(`${needed}: install it (Debian: apt-get install ${from.debianPackage})`)
  }
  const problem = await install([from.debianPackage])
  const found = find(program, from.directories)
  if (found === null) throw new Error(`${needed}, and apt-get did not install it:\n${problem}`)
  return found
}

/**
 * Begins with what the tests will ask for, so that nobody waits for it when they do. What can't be installed is said by the test that
 * needs it.
 */
export const installAhead = (): void => {
  if (process.getuid?.() !== 0 || find("apt-get") === null) return
  const missing = Object.entries<Source>(programs).flatMap(([program, { debianPackage, directories }]) =>
    find(program, directories) === null ? [debianPackage] : []
  )
  if (missing.length > 0) void install([...new Set(missing)])
}

/** Its output, for the case that the program is still missing afterwards. */
const install = async (packages: ReadonlyArray<string>): Promise<string> => {
  const names = packages.join(" ")
  const steps = [
    `there=$(dpkg-query -W -f '\${Status}\\n' ${names} 2>/dev/null | grep -c 'ok installed')`,
    `[ "$there" = ${packages.length} ] && exit 0`,
    // A mirror that fails to answer once is asked again; another apt on this machine is waited for.
    "export DEBIAN_FRONTEND=noninteractive",
    "apt='apt-get -y -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300'",
    "for try in 1 2 3; do",
    `  $apt update && $apt install --no-install-recommends ${names} && exit 0`,
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
