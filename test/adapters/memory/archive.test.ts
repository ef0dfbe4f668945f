import * as MemoryPorts from "../../../src/adapters/memory/MemoryPorts.ts"
import { archiveContract, derivedContract } from "../../contracts/archiveContract.ts"

archiveContract("memory", MemoryPorts.layer)
derivedContract("memory", MemoryPorts.layer)
