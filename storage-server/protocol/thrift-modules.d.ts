/** Types of the part of `thrift` that thrift-table.ts drives; the package brings none. */
declare module 'thrift/lib/nodejs/lib/thrift/compact_protocol.js' {
  interface ThriftBytes {
    readByte(): number;
    read(length: number): Uint8Array;
    readString(length: number): string;
    write(bytes: Uint8Array): void;
    flush(): void;
  }

  export default class TCompactProtocol {
    constructor(bytes: ThriftBytes);
    writeStructBegin(name: string): void;
    writeStructEnd(): void;
    writeFieldBegin(name: string, type: number, id: number): void;
    writeFieldEnd(): void;
    writeFieldStop(): void;
    writeListBegin(elementType: number, size: number): void;
    writeListEnd(): void;
    writeSetBegin(elementType: number, size: number): void;
    writeSetEnd(): void;
    writeBool(value: boolean): void;
    writeByte(value: number): void;
    writeI64(value: number): void;
    writeString(value: string): void;
    writeBinary(value: Uint8Array): void;
    readStructBegin(): unknown;
    readStructEnd(): void;
    readFieldBegin(): { ftype: number; fid: number };
    readFieldEnd(): void;
    readListBegin(): { etype: number; size: number };
    readListEnd(): void;
    readSetBegin(): { etype: number; size: number };
    readSetEnd(): void;
    readMapBegin(): { ktype: number; vtype: number; size: number };
    readMapEnd(): void;
    readBool(): boolean;
    readByte(): number;
    /** A node-int64, whose number is not finite beyond 2^53. */
    readI64(): { toNumber(): number };
    readBinary(): Uint8Array;
    readString(): string;
  }
}
