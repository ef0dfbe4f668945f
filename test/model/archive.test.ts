import { archiveContract, derivedContract } from "../contracts/store/archiveContract.ts"
import * as MemoryPorts from "./MemoryPorts.ts"

archiveContract("memory", MemoryPorts.layer)
derivedContract("memory", MemoryPorts.layer)
